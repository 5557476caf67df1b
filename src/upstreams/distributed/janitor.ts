import { type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import { type SharedServices, inputAssetIdsOf } from './shared-services.ts';
import { randomUUID } from 'node:crypto';
import { PeriodicTask } from '../periodic-task.ts';
import { SWEEP_FAILURE, sweep } from '../assets/retention.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';
import { type QueueScripts, defineQueueScripts } from '../distributed-state/run-scripts.ts';
import type { TicketQueue } from '../distributed-state/ticket-queue.ts';

const LOCK_MS = 5 * 60_000;
const UNRECORDED_EVERY_MS = 60 * 60_000;
/** A job that reuses files about to expire has this long to extend their retention. */
const GRACE_MS = 60_000;

export type JanitorOptions = Pick<
  SharedServices,
  'redis' | 'keys' | 'jobFiles' | 'blobs' | 'clock'
> & {
  readonly ledger: Ledger;
  readonly ticketQueue: TicketQueue;
  readonly runState: Pick<RunStateStore, 'enqueue' | 'waiting' | 'heldJobs' | 'drop'>;
  readonly assetBudgetBytes: number;
  readonly sweepIntervalMs: number;
  readonly log: Logger;
};

/** Cleans up for all processes, in one process at a time. */
export class Janitor {
  readonly #options: JanitorOptions;
  readonly #scripts: QueueScripts;
  readonly #periodicTask: PeriodicTask;

  constructor(options: JanitorOptions) {
    const { redis, clock, log, sweepIntervalMs: everyMs } = options;
    this.#options = options;
    this.#scripts = defineQueueScripts(redis);
    const failure = SWEEP_FAILURE;
    this.#periodicTask = new PeriodicTask(() => this.#run(), { log, clock, everyMs, failure });
  }

  /**
   * Restores the queue, then cleans up at an interval. The process that starts may be the one that
   * crashed; the lock of a crashed janitor lasts for minutes.
   */
  start(): void {
    this.#periodicTask.start(async () =>
      this.#restoreQueue(await this.#options.ledger.jobs.unfinished()),
    );
  }

  close(): Promise<void> {
    return this.#periodicTask.close();
  }

  async #run(): Promise<void> {
    const { redis, keys } = this.#options;
    // In an emptied Redis no file has a record: all files would be removed.
    if ((await redis.exists(keys.ledgerId)) === 0) return;
    const holder = randomUUID();
    if ((await redis.set(keys.janitorLock, holder, 'PX', LOCK_MS, 'NX')) !== 'OK') return;
    try {
      await this.#cleanUp();
    } finally {
      await this.#scripts.unlock(1, keys.janitorLock, holder);
    }
  }

  async #cleanUp(): Promise<void> {
    const { redis, keys, ledger, blobs } = this.#options;
    const unfinished = await ledger.jobs.unfinished();
    await this.#restoreQueue(unfinished);
    await this.#dropEndedJobs(new Set(unfinished.map(({ id }) => id)));
    await this.#sweep(unfinished);
    await blobs.finishRemovals();
    const isTime = await redis.set(keys.unrecordedSweep, '1', 'PX', UNRECORDED_EVERY_MS, 'NX');
    if (isTime === 'OK') await blobs.removeUnrecorded();
  }

  /** A process that crashed between the ledger and the queue left a job without a queue entry or a ticket. */
  async #restoreQueue(rows: readonly JobRow[]): Promise<void> {
    const { runState, ticketQueue } = this.#options;
    for (const row of rows) await runState.enqueue(row);
    if (rows.length === 0) return;
    await ticketQueue.add(rows);
    await ticketQueue.fill(await runState.waiting());
  }

  /** Releases jobs of workers that crashed after the end of the job: they would count as running for their user. */
  async #dropEndedJobs(live: ReadonlySet<string>): Promise<void> {
    const { runState, ledger } = this.#options;
    for (const id of await runState.heldJobs()) {
      const row = live.has(id) ? undefined : await ledger.jobs.get(id);
      const isOver = row === undefined || IS_TERMINAL[row.status as JobStatus];
      if (!live.has(id) && isOver) await runState.drop(id);
    }
  }

  async #sweep(unfinished: readonly JobRow[]): Promise<void> {
    const { jobFiles, ledger, assetBudgetBytes, clock } = this.#options;
    const ids = new Set(unfinished.map(({ id }) => id));
    const inputs = new Set(unfinished.flatMap(inputAssetIdsOf));
    await sweep({
      ...jobFiles,
      ledger,
      assetBudgetBytes,
      clock: { now: () => clock.now() - GRACE_MS },
      isInUse: (id) => inputs.has(id),
      isLive: (id) => ids.has(id),
    });
  }
}
