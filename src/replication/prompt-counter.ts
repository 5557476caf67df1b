import type { RedisConnections } from '../redis/redis.ts';

/** v1's priority counter, shared by all processes. */
export async function openSharedCounter(
  { commands, prefix }: RedisConnections,
  first: number,
): Promise<{ next(): Promise<number> }> {
  const key = `${prefix}number`;
  await commands.set(key, first, 'NX');
  return { next: async () => (await commands.incr(key)) - 1 };
}
