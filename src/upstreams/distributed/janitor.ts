import { randomUUID } from 'node:crypto';
import { type PeriodicTask, createPeriodicTask } from '../../lib/periodic-task.ts';
import { sweep } from '../assets/retention.ts';
import type { JobFiles } from '../assets/job-files.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';
import { isJsonObject, parseJson } from '../../protocol/json.ts';
import type { SharedBlobs } from './shared-blobs.ts';
import type { QueueKeys } from './redis-keys.ts';
import { type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import type { RunStateStore } from './run-state.ts';
import { UNLOCK, runScript } from './run-scripts.ts';
import type { TicketQueue } from './ticket-queue.ts';

const LOCK_MS = 5 * 60_000;
const UNRECORDED_EVERY_MS = 60 * 60_000;
/** A job that reuses files about to expire has this long to extend their retention. */
const GRACE_MS = 60_000;

export type JanitorOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly ledger: Ledger;
  readonly jobFiles: JobFiles;
  readonly blobs: SharedBlobs;
  readonly ticketQueue: TicketQueue;
  readonly runState: Pick<RunStateStore, 'enqueue' | 'waiting' | 'held' | 'drop'>;
  readonly assetBudgetBytes: number;
  readonly sweepIntervalMs: number;
  readonly clock: () => number;
  readonly log: Logger;
};

/** Cleans up for all processes, in one process at a time. */
export function createJanitor(deps: JanitorOptions): PeriodicTask {
  const { redis, keys, ledger, ticketQueue, runState, blobs, jobFiles, clock } = deps;

  /**
   * A process that crashed between the ledger and the queue left a job without a queue entry or a
   * ticket.
   */
  async function restoreQueue(rows: readonly JobRow[]): Promise<void> {
    for (const row of rows) await runState.enqueue(row);
    if (rows.length === 0) return;
    await ticketQueue.add(rows);
    await ticketQueue.fill(await runState.waiting());
  }

  /**
   * Releases jobs of workers that crashed after the end of the job: they would count as running for
   * their user.
   */
  async function dropEndedJobs(live: ReadonlySet<string>): Promise<void> {
    for (const id of await runState.held()) {
      const row = live.has(id) ? undefined : await ledger.jobs.get(id);
      const isOver = row === undefined || IS_TERMINAL[row.status as JobStatus];
      if (!live.has(id) && isOver) await runState.drop(id);
    }
  }

  async function sweepAll(): Promise<void> {
    const rows = await ledger.jobs.unfinished();
    await restoreQueue(rows);
    const ids = new Set(rows.map(({ id }) => id));
    await dropEndedJobs(ids);
    const read = new Set(rows.flatMap(inputAssetIdsOf));
    await sweep({
      ...jobFiles,
      ledger,
      assetBudgetBytes: deps.assetBudgetBytes,
      clock: () => clock() - GRACE_MS,
      isInUse: (id) => read.has(id),
      isLive: (id) => ids.has(id),
    });
    await blobs.finishRemovals();
    const isTime = await redis.set(keys.unrecordedSweep, '1', 'PX', UNRECORDED_EVERY_MS, 'NX');
    if (isTime === 'OK') await blobs.removeUnrecorded();
  }

  async function runOnce(): Promise<void> {
    // In an emptied Redis no file has a record: all files would be removed.
    if ((await redis.exists(keys.ledgerId)) === 0) return;
    const holder = randomUUID();
    if ((await redis.set(keys.janitor, holder, 'PX', LOCK_MS, 'NX')) !== 'OK') return;
    try {
      await sweepAll();
    } finally {
      await runScript(redis, UNLOCK, { keys: [keys.janitor], args: [holder] });
    }
  }

  const periodicTask = createPeriodicTask(runOnce, {
    log: deps.log,
    everyMs: deps.sweepIntervalMs,
  });
  return {
    // The process that starts may be the one that crashed; the lock of a crashed janitor lasts for
    // minutes.
    start: (first) =>
      periodicTask.start(async () => {
        await first();
        await restoreQueue(await ledger.jobs.unfinished());
      }),
    close: () => periodicTask.close(),
  };
}

/** Ids of the assets that an unfinished job reads. */
export function inputAssetIdsOf(row: JobRow): readonly string[] {
  const extras = row.extrasJson === null ? undefined : parseJson(row.extrasJson);
  const reads = isJsonObject(extras) ? extras['reads'] : [];
  return Array.isArray(reads) ? (reads as readonly string[]) : [];
}
