import { randomUUID } from 'node:crypto';
import { systemClock } from '../../lib/clock.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { Logger } from '../../observability/log.ts';
import type { RedisConnections } from '../../redis/redis.ts';
import { createJobFiles } from '../assets/job-files.ts';
import type { Engine, EngineOptions } from '../job-engine.ts';
import { createEngine } from '../jobs/create-engine.ts';
import { jobFromRow } from '../jobs/live-job.ts';
import { BullJobQueue } from './bull-job-queue.ts';
import type { TakeoverTimes } from './bull-worker.ts';
import { EventMirrors } from './event-mirrors.ts';
import { createJanitor } from './janitor.ts';
import { QueueKeys } from './redis-keys.ts';
import { RedisRuns, createRedisJobs } from './redis-runs.ts';
import { RunStates } from './run-state.ts';
import { createSharedBlobs, createSharedOutputNames } from './shared-blobs.ts';

/** A connection that is silent for this long while commands wait is closed and opened again. */
const SOCKET_TIMEOUT_MS = 10_000;

const TAKEOVER: TakeoverTimes = { lockMs: 6000, checkMs: 1000 };

const CLOSE_WITHIN_MS = 10_000;

/** The queue that processes share. */
type SharedQueue = {
  readonly links: RedisConnections;
  readonly takeover?: Partial<TakeoverTimes>;
};

/**
 * Creates the embedded engine over Redis, which several processes share. This process accepts jobs, and runs jobs
 * when `concurrency` is not 0.
 */
export async function createDistributedEngine(
  options: EngineOptions,
  { links, takeover }: SharedQueue,
): Promise<Engine> {
  const { ledger, limits, log, library, clock = systemClock } = options;
  const redis = links.connect({ socketTimeout: SOCKET_TIMEOUT_MS });
  const keys = new QueueKeys(links);
  const pubsub = links.subscriber();
  const worker = randomUUID();
  const common = { redis, keys, pubsub, ledger, limits, log, clock };
  const blobs = createSharedBlobs({ ...common, blobs: options.blobs });
  const jobFiles = createJobFiles({
    ...common,
    ...library,
    ...options.outputFiles,
    blobs,
    names: createSharedOutputNames(redis, keys),
    isInUse: async (id) =>
      (await ledger.jobs.unfinished()).some((row) => jobFromRow(row).reads.has(id)),
  });
  const queue = new BullJobQueue({ ...common, worker, takeover: { ...TAKEOVER, ...takeover } });
  const runState = new RunStates(redis, keys, worker);
  const eventMirrors = new EventMirrors({ ...common, runState, queue });
  const engine = await createEngine(options, {
    clock,
    jobFiles,
    queue,
    live: createRedisJobs({ runState, queue, eventMirrors }),
    runs: new RedisRuns({ ...common, runState }),
    cleanUp: createJanitor({ ...common, jobFiles: { ...jobFiles, blobs }, queue }),
  });
  const close = async (): Promise<void> => {
    eventMirrors.close();
    await closeInTime(engine, log);
    pubsub.close();
  };
  return { ...engine, close };
}

/** Closing has a time limit, because commands wait while Redis is unreachable. */
async function closeInTime(engine: Engine, log: Logger): Promise<void> {
  if (await completesWithin(CLOSE_WITHIN_MS, engine.close())) return;
  const event = 'worker.close_timed_out';
  log.warn({ event }, 'Redis is unavailable: other processes take over the running jobs');
}
