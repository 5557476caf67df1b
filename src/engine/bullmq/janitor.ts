import type { Clock } from '../../lib/clock.ts';
import { ProcessLeases } from '../../ledger/leases.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { Redis } from '../../redis/redis.ts';
import type { JobFiles } from '../assets/job-files.ts';
import { removeUnrecorded, sweep } from '../assets/retention.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { JobQueue } from '../jobs/job-queue.ts';
import { jobFromRow } from '../jobs/live-job.ts';
import { PeriodicSweep } from '../periodic-sweep.ts';
import type { QueueKeys } from './redis-keys.ts';
import type { SharedBlobs } from './shared-blobs.ts';

const JANITOR = { name: 'janitor', leaseMs: 5 * 60_000 };
/** The interval at which bytes without a record are removed. */
const UNRECORDED_EVERY_MS = 60 * 60_000;
/** Bytes without a record that are older than this will get none. */
const UNRECORDED_AGE_MS = 60 * 60_000;
/** A sweep reads the unfinished jobs again when its list is this old. */
const REREAD_MS = 1000;
/** Files are removed this long after they expire, so that a job which reuses them can extend their retention. */
const GRACE_MS = 60_000;

type JanitorOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly ledger: Ledger;
  readonly jobFiles: JobFiles & { readonly blobs: SharedBlobs };
  readonly queue: Pick<JobQueue, 'add'>;
  readonly limits: EngineLimits;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Creates the sweep that removes expired data and repairs the queue, in one process at a time for all processes. */
export function createJanitor(options: JanitorOptions): PeriodicSweep {
  const { redis, keys, limits } = options;
  const leases = new ProcessLeases(redis, keys.prefix);
  return new PeriodicSweep({
    ...options,
    everyMs: limits.sweepIntervalMs,
    // The queue does not wait for the lease: the lease of a crashed janitor lasts for minutes.
    first: () => restoreQueue(options),
    async sweep() {
      // Stop if the id of the ledger is missing: Redis has lost its records, and all files would be removed.
      if ((await redis.exists(keys.ledgerId)) === 0) return;
      await leases.tryWith(JANITOR, () => cleanUp(options));
    },
  });
}

/** A process that crashed between the two writes has left a job in the ledger that is not in the queue. */
async function restoreQueue({ ledger, queue }: JanitorOptions): Promise<void> {
  await queue.add(await ledger.jobs.unfinished());
}

async function cleanUp(options: JanitorOptions): Promise<void> {
  const { redis, keys, jobFiles, ledger, clock } = options;
  await restoreQueue(options);
  await sweepUnused(options);
  await jobFiles.blobs.finishRemovals();
  const isTime = await redis.set(keys.unrecordedSweep, '1', 'PX', UNRECORDED_EVERY_MS, 'NX');
  if (isTime === 'OK')
    await removeUnrecorded({ ...jobFiles, ledger }, clock.now() - UNRECORDED_AGE_MS);
}

async function sweepUnused({ jobFiles, ledger, limits, clock }: JanitorOptions): Promise<void> {
  // Jobs may be submitted during the sweep, so their list is read again.
  let known = { ...idsOf([]), atMs: -Infinity };
  const unfinished = async (): Promise<typeof known> => {
    const atMs = clock.now();
    if (atMs - known.atMs > REREAD_MS) known = { ...idsOf(await ledger.jobs.unfinished()), atMs };
    return known;
  };
  await sweep({
    ...jobFiles,
    ledger,
    limits,
    clock: { now: () => clock.now() - GRACE_MS },
    isInUse: async (id) => (await unfinished()).inputs.has(id),
    isLive: async (id) => (await unfinished()).jobs.has(id),
  });
}

/** The ids of the jobs, and of the assets that they read. */
function idsOf(rows: readonly JobRow[]) {
  return {
    jobs: new Set(rows.map(({ id }) => id)),
    inputs: new Set(rows.flatMap((row) => [...jobFromRow(row).reads])),
  };
}
