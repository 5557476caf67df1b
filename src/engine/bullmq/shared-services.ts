import { randomUUID } from 'node:crypto';
import { type Clock, systemClock } from '../../lib/clock.ts';
import type { EngineOptions } from '../job-engine.ts';
import { type JobFiles, createJobFiles } from '../assets/job-files.ts';
import type { Redis, RedisConnections } from '../../redis/redis.ts';
import type { RedisSubscriber } from '../../redis/redis-subscriber.ts';
import { BullJobQueue } from './bull-job-queue.ts';
import type { TakeoverTimes } from './bull-worker.ts';
import { jobFromRow } from '../jobs/live-job.ts';
import { type SharedBlobs, createSharedBlobs, createSharedOutputNames } from './shared-blobs.ts';
import { QueueKeys } from './redis-keys.ts';
import { RunStates } from './run-state.ts';

/** A connection that is silent for this long while commands wait is closed and opened again. */
const SOCKET_TIMEOUT_MS = 10_000;

const TAKEOVER: TakeoverTimes = { lockMs: 6000, checkMs: 1000 };

/** The queue that processes share. */
export type SharedQueue = {
  readonly links: RedisConnections;
  readonly takeover?: Partial<TakeoverTimes>;
};

/** The services that the request side and the worker side of this process share. */
export type SharedServices = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly pubsub: RedisSubscriber;
  readonly blobs: SharedBlobs;
  readonly jobFiles: JobFiles;
  readonly queue: BullJobQueue;
  readonly runState: RunStates;
  readonly clock: Clock;
};

/** Opens the services over the shared Redis and files that all parts of this process use. */
export function openSharedServices(options: EngineOptions, shared: SharedQueue): SharedServices {
  const { ledger, limits, log, library, clock = systemClock } = options;
  const { links } = shared;
  const redis = links.connect({ socketTimeout: SOCKET_TIMEOUT_MS });
  const keys = new QueueKeys(links);
  const blobs = createSharedBlobs({ redis, keys, blobs: options.blobs, ledger, clock });
  const jobFiles = createJobFiles({
    ledger,
    nodes: library.nodes,
    blobs,
    clock,
    names: createSharedOutputNames(redis, keys),
    highestUsedElsewhere: options.outputFiles.highestUsedElsewhere,
    retentionMs: limits.retentionMs,
    isInUse: async (id) =>
      (await ledger.jobs.unfinished()).some((row) => jobFromRow(row).reads.has(id)),
  });
  const pubsub = links.subscriber();
  const worker = randomUUID();
  const takeover = { ...TAKEOVER, ...shared.takeover };
  return {
    redis,
    keys,
    pubsub,
    blobs,
    jobFiles,
    queue: new BullJobQueue({ redis, pubsub, keys, worker, takeover, clock, log }),
    runState: new RunStates(redis, keys, worker),
    clock,
  };
}
