import { LRUCache } from 'lru-cache';
import type { SharedServices } from './shared-services.ts';
import { ProcessLeases } from '../../ledger/leases.ts';
import { PeriodicSweep } from '../periodic-sweep.ts';
import { sweep } from '../assets/retention.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { Logger } from '../../observability/log.ts';
import { jobFromRow } from '../jobs/live-job.ts';

const JANITOR = { name: 'janitor', leaseMs: 5 * 60_000 };
/** The interval at which bytes without a record are removed. */
const UNRECORDED_EVERY_MS = 60 * 60_000;
/** A sweep reads the unfinished jobs again when its list is this old. */
const REREAD_MS = 1000;
/** Files are removed this long after they expire, so that a job which reuses them can extend their retention. */
const GRACE_MS = 60_000;

type JanitorOptions = {
  readonly shared: SharedServices;
  readonly ledger: Ledger;
  readonly limits: EngineLimits;
  readonly log: Logger;
};

/** Removes expired data and repairs the queue, in one process at a time for all processes. */
export class Janitor {
  readonly #options: JanitorOptions;
  readonly #leases: ProcessLeases;
  readonly #periodicSweep: PeriodicSweep;

  constructor(options: JanitorOptions) {
    const { log, limits } = options;
    const { redis, keys, clock } = options.shared;
    this.#options = options;
    this.#leases = new ProcessLeases(redis, keys.prefix);
    const everyMs = limits.sweepIntervalMs;
    this.#periodicSweep = new PeriodicSweep(() => this.#run(), { log, clock, everyMs });
  }

  /**
   * Restores the queue at once, then cleans up at an interval. The queue does not wait for the lease: the lease of a
   * crashed janitor lasts for minutes.
   */
  start(): void {
    this.#periodicSweep.start(async () =>
      this.#options.shared.queue.add(await this.#options.ledger.jobs.unfinished()),
    );
  }

  close(): Promise<void> {
    return this.#periodicSweep.close();
  }

  async #run(): Promise<void> {
    const { redis, keys } = this.#options.shared;
    // Stop if the id of the ledger is missing: Redis has lost its records, and all files would be removed.
    if ((await redis.exists(keys.ledgerId)) === 0) return;
    await this.#leases.tryWith(JANITOR, () => this.#cleanUp());
  }

  async #cleanUp(): Promise<void> {
    const { ledger } = this.#options;
    const { redis, keys, blobs, queue } = this.#options.shared;
    // A process that crashed between the two writes has left a job in the ledger that is not in the queue.
    await queue.add(await ledger.jobs.unfinished());
    await this.#sweep();
    await blobs.finishRemovals();
    const isTime = await redis.set(keys.unrecordedSweep, '1', 'PX', UNRECORDED_EVERY_MS, 'NX');
    if (isTime === 'OK') await blobs.removeUnrecorded();
  }

  async #sweep(): Promise<void> {
    const { ledger, limits } = this.#options;
    const { jobFiles, clock } = this.#options.shared;
    // Jobs may be submitted during the sweep, so their list is read again.
    const unfinished = new LRUCache({
      max: 1,
      ttl: REREAD_MS,
      ttlResolution: 0,
      perf: clock,
      fetchMethod: async () => idsOf(await ledger.jobs.unfinished()),
    });
    const current = () => unfinished.forceFetch('jobs');
    await sweep({
      ...jobFiles,
      ledger,
      assetBudgetBytes: limits.assetBudgetBytes,
      clock: { now: () => clock.now() - GRACE_MS },
      isInUse: async (id) => (await current()).inputs.has(id),
      isLive: async (id) => (await current()).jobs.has(id),
    });
  }
}

/** The ids of the jobs, and of the assets that they read. */
function idsOf(rows: readonly JobRow[]) {
  return {
    jobs: new Set(rows.map(({ id }) => id)),
    inputs: new Set(rows.flatMap((row) => [...jobFromRow(row).reads])),
  };
}
