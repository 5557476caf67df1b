import { Queue } from 'bullmq';
import type { Clock } from '../../lib/clock.ts';
import type { RedisConnections } from '../../redis/redis.ts';
import { QUEUE_NAME, createQueueKeys } from './redis-keys.ts';

/** A reason why waiting jobs are not run; all servers see the same. */
export type QueueObstacle = 'paused' | 'no_worker' | 'stalled';

/** Jobs wait for so long while none runs, although there are workers. */
const STALLED_AFTER_MS = 30_000;

/** Reads what is in the way of the jobs of the shared queue; rejects when Redis does not answer. */
export function createQueueCondition(
  links: QueueLinks,
  clock: Pick<Clock, 'now'>,
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

/** Counts the processes that wait for jobs of the shared queue; `undefined`: not known. */
export function createWorkerCount(links: QueueLinks): () => Promise<number | undefined> {
  const queue = openQueue(links);
  return () => workersOf(queue);
}

type QueueLinks = Pick<RedisConnections, 'commands' | 'partitions'>;

function openQueue({ commands: connection, partitions }: QueueLinks): Queue {
  const { bullPrefix: prefix } = createQueueKeys(partitions);
  const queue = new Queue(QUEUE_NAME, { connection, prefix, skipMetasUpdate: true });
  // The connection has listeners of its own.
  queue.on('error', () => {});
  return queue;
}

/** `undefined`: this Redis does not list its connections to this user. */
async function workersOf(queue: Queue): Promise<number | undefined> {
  try {
    return await queue.getWorkersCount();
  } catch (error) {
    if ((error as Error).name === 'ReplyError') return undefined;
    throw error;
  }
}
