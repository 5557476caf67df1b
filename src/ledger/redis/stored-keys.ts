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

/** The key that exists during a restore into this Redis. While it exists, no server may open the ledger. */
export const RESTORE_KEY = 'restore';

/**
 * Prepares this Redis for a restore, and keeps servers out of it until `finishRestore`. Removes the records of a
 * restore that was interrupted. Throws when it has other records.
 */
export async function beginRestore(links: RedisConnections): Promise<void> {
  const { commands, prefix } = links;
  const marker = `${prefix}${RESTORE_KEY}`;
  const isUnfinished = (await commands.exists(marker)) === 1;
  if (!isUnfinished && !(await isUnused(links)))
    throw new Error('is not empty: give an empty Redis');
  await commands.set(marker, '');
  for await (const key of recordKeys(links)) await commands.unlink(key);
}

/** Lets servers open the restored ledger. */
export async function finishRestore({ commands, prefix }: RedisConnections): Promise<void> {
  await commands.del(`${prefix}${RESTORE_KEY}`);
}

async function isUnused(links: RedisConnections): Promise<boolean> {
  for await (const _key of recordKeys(links)) return false;
  return true;
}

async function* recordKeys(links: RedisConnections): AsyncGenerator<string> {
  const empty = new Set([...EMPTY_KEYS, RESTORE_KEY].map((name) => links.prefix + name));
  for await (const key of keysLike(links, `${links.prefix}*`)) if (!empty.has(key)) yield key;
}
