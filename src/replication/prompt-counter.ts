import type { RedisConnections } from '../redis/redis.ts';

/** Opens the counter of v1's prompt numbers, which all processes share. It starts at `first` unless it exists. */
export async function openSharedCounter(
  { commands, prefix }: RedisConnections,
  first: number,
): Promise<{ next(): Promise<number> }> {
  const key = `${prefix}number`;
  await commands.set(key, first, 'NX');
  return { next: async () => (await commands.incr(key)) - 1 };
}
