import { Queue } from 'bullmq';
import type { Redis } from '../../lib/redis.ts';
import type { QueueKeys } from './redis-keys.ts';

const FORMER_NAME = 'jobs';

/**
 * Removes the queue of earlier versions: tickets in BullMQ, and beside them who waits and who runs.
 * Its jobs are in the ledger, and `run:ID` is as it was.
 */
export async function removeFormerQueue(redis: Redis, { prefix, bullPrefix }: QueueKeys) {
  if ((await redis.exists(`${bullPrefix}:${FORMER_NAME}:meta`)) === 0) return;
  const users = await redis.zrange(`${prefix}queue:turns`, 0, '-1');
  const former = ['waiting', 'held', 'tickets', ...users.map((user) => `waiting-of:${user}`)];
  await redis.unlink(former.map((name) => `${prefix}queue:${name}`));
  const queue = new Queue(FORMER_NAME, { connection: redis, prefix: bullPrefix });
  await queue.obliterate({ force: true });
  await queue.close();
}
