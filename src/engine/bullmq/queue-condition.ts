import { Queue } from 'bullmq';
import type { Clock } from '../../lib/clock.ts';
import type { RedisConnections } from '../../redis/redis.ts';
import { QUEUE_NAME, QueueKeys } from './redis-keys.ts';

/** A reason why waiting jobs do not run. It is the same for all servers. */
export type QueueObstacle = 'paused' | 'no_worker' | 'stalled';

/** The queue is stalled when jobs wait for this long and none runs, although there are workers. */
const STALLED_AFTER_MS = 30_000;

/**
 * Returns a function that reads why waiting jobs of the shared queue do not run. `undefined`: nothing prevents them.
 * It rejects when Redis does not answer.
 */
export function createQueueCondition(
  links: RedisConnections,
  clock: Clock,
): () => Promise<QueueObstacle | undefined> {
  const queue = openQueue(links);
  let idleSinceMs: number | undefined;
  return async () => {
    const [isPaused, workers, counts] = await Promise.all([
      queue.isPaused(),
      workersOf(queue),
      queue.getJobCounts('wait', 'prioritized', 'active'),
    ]);
    const waiting = (counts['wait'] ?? 0) + (counts['prioritized'] ?? 0);
    const isIdle = waiting > 0 && counts['active'] === 0;
    idleSinceMs = isIdle ? (idleSinceMs ?? clock.now()) : undefined;
    if (isPaused) return 'paused';
    if (workers === 0) return 'no_worker';
    const isStalled = idleSinceMs !== undefined && clock.now() - idleSinceMs >= STALLED_AFTER_MS;
    return isStalled ? 'stalled' : undefined;
  };
}

/** Returns a function that says if BullMQ delays a job of the shared queue after a failed run. */
export function createDelayCheck(links: RedisConnections): (jobId: string) => Promise<boolean> {
  const queue = openQueue(links);
  return async (jobId) => (await queue.getJobState(jobId)) === 'delayed';
}

/** Returns a function that counts the workers of the shared queue. `undefined`: the number is not known. */
export function createWorkerCount(links: RedisConnections): () => Promise<number | undefined> {
  const queue = openQueue(links);
  return () => workersOf(queue);
}

function openQueue(links: RedisConnections): Queue {
  const { bullPrefix: prefix } = new QueueKeys(links);
  const queue = new Queue(QUEUE_NAME, {
    connection: links.commands,
    prefix,
    skipMetasUpdate: true,
  });
  // `openRedis` logs the errors of the connection.
  queue.on('error', () => {});
  return queue;
}

/** The number of workers; `undefined` when Redis does not let this user list connections. */
async function workersOf(queue: Queue): Promise<number | undefined> {
  try {
    return await queue.getWorkersCount();
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return undefined;
    throw error;
  }
}
