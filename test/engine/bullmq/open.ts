import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { type Engine, DEFAULT_LIMITS, type EngineLimits } from '../../../src/engine/job-engine.ts';
import { openRedisLedger } from '../../../src/ledger/redis/redis-ledger.ts';
import { createDistributedEngine } from '../../../src/engine/bullmq/distributed-engine.ts';
import {
  BullJobQueue,
  type BullJobQueueOptions,
} from '../../../src/engine/bullmq/bull-job-queue.ts';
import type { TakeoverTimes } from '../../../src/engine/bullmq/bull-worker.ts';
import { QueueKeys } from '../../../src/engine/bullmq/redis-keys.ts';
import { RunStates } from '../../../src/engine/bullmq/run-state.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Blobs } from '../../../src/blobs/blobs.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { type RedisConnections, openRedis } from '../../../src/redis/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { ALL_NODES } from '../memory/tiny-nodes.mjs';
import { type RedisServer, startRedis } from '../../support/processes/redis.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

/** A Redis for all tests of a file. */
export function useRedis(): () => RedisServer {
  let redis: RedisServer | undefined;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(async () => await redis?.dispose());
  return () => {
    if (!redis) throw new Error('there is no Redis yet');
    return redis;
  };
}

/** The Redis and data directory that the engines of one test share. */
export type QueueSetup = {
  readonly url: string;
  readonly prefix: string;
  readonly dataDir: string;
};

export async function openQueueSetup(redis: RedisServer): Promise<QueueSetup> {
  const dataDir = await tempFolder('data');
  return { url: redis.url, prefix: `test-${path.basename(dataDir)}:`, dataDir };
}

/** An engine over the tiny node library, as a process of its own would have it. */
export async function startQueued(
  setup: QueueSetup,
  options: {
    readonly limits?: Partial<EngineLimits>;
    readonly takeover?: TakeoverTimes;
    readonly blobs?: Blobs;
  } = {},
): Promise<Engine> {
  const log = silentLogger();
  const links = openWithPrefix(setup);
  await links.commands.set(`${setup.prefix}id`, 'test', 'NX');
  const ledger = openRedisLedger({ links });
  const engine = await createDistributedEngine(
    {
      ...setup,
      blobs: options.blobs ?? createFolderBlobs(path.join(setup.dataDir, 'blobs')),
      outputFiles: { spoolDir: setup.dataDir },
      ledger,
      library: {
        nodes: ALL_NODES,
        nodesModule: new URL('../memory/tiny-nodes.mjs', import.meta.url).href,
      },
      log,
      limits: { ...DEFAULT_LIMITS, ...options.limits },
    },
    { links, ...(options.takeover && { takeover: options.takeover }) },
  );
  engine.start();
  onTestFinished(async () => {
    await engine.close();
    await ledger.close();
    await links.close();
  });
  return engine;
}

/** The services that a process has, without an engine. */
export function openServices(
  setup: QueueSetup,
  options: Partial<Pick<BullJobQueueOptions, 'pubsub' | 'timeoutMs'>> = {},
) {
  const log = silentLogger();
  const links = openWithPrefix(setup);
  const ledger = openRedisLedger({ links });
  const keys = new QueueKeys(links);
  const redis = links.commands;
  const messages = links.subscriber();
  const worker = randomUUID();
  const queue = new BullJobQueue({
    redis,
    keys,
    worker,
    clock: systemClock,
    log,
    pubsub: messages,
    takeover: { lockMs: 6000, checkMs: 1000 },
    ...options,
  });
  onTestFinished(async () => {
    await queue.close();
    messages.close();
    await ledger.close();
    await links.close();
  });
  return { links, redis, keys, ledger, queue, runs: new RunStates(redis, keys, worker) };
}

/** Connections to keys of the test's own. */
export function openWithPrefix({
  url,
  prefix,
}: Pick<QueueSetup, 'url' | 'prefix'>): RedisConnections {
  return { ...openRedis(url, { log: silentLogger() }), prefix, channels: prefix };
}
