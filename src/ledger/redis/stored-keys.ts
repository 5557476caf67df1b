import { type RedisConnections, nodesOf } from '../../redis/redis.ts';

const KEYS_AT_A_TIME = 1000;
/** Names of keys that a ledger has before anything is recorded in it. */
const EMPTY_KEYS = ['id', 'schema', 'partitions'];

/** Each key that has a name like this; some may come twice. */
export async function* keysLike(links: RedisConnections, match: string): AsyncGenerator<string> {
  for (const node of await nodesOf(links, 'master')) {
    const found = node.scanStream({ match, count: KEYS_AT_A_TIME });
    for await (const keys of found) yield* keys as string[];
  }
}

/** True when nothing of Holdover is in this Redis, or cluster, yet. */
export async function isUnusedRedis(links: RedisConnections): Promise<boolean> {
  const { users, queue } = links.partitions;
  const starts = [links, queue, ...users].map(({ prefix }) => prefix);
  const empty = new Set(starts.flatMap((start) => EMPTY_KEYS.map((name) => start + name)));
  for await (const key of keysLike(links, `${links.prefix}*`)) if (!empty.has(key)) return false;
  return true;
}
