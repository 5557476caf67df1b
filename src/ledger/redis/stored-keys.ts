import type { RedisConnections } from '../../redis/redis.ts';

const KEYS_AT_A_TIME = 1000;
/** The names of the keys that a ledger without records has. */
const EMPTY_KEYS = ['id', 'schema'];

/** The keys that match a pattern of `SCAN`; a key may come twice. */
export async function* keysLike(
  { commands }: RedisConnections,
  match: string,
): AsyncGenerator<string> {
  const found = commands.scanStream({ match, count: KEYS_AT_A_TIME });
  for await (const keys of found) yield* keys as string[];
}

/** True when this Redis has no records of Holdover. */
export async function isUnusedRedis(links: RedisConnections): Promise<boolean> {
  const empty = new Set(EMPTY_KEYS.map((name) => links.prefix + name));
  for await (const key of keysLike(links, `${links.prefix}*`)) if (!empty.has(key)) return false;
  return true;
}
