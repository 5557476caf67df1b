import type { RedisConnections } from '../../redis/redis.ts';
import { KINDS, RECORD_KINDS, type RecordKind, type StoredRecord } from '../records.ts';
import { LedgerConnection } from './connection.ts';
import { keysLike } from './stored-keys.ts';
import { Table } from './table.ts';

/** The lists whose order a restored ledger has, too. A member may begin with a number of 16 digits. */
const LISTS: { readonly [kind in RecordKind]?: readonly string[] } = {
  prompts: ['prompts:done:*', 'prompts:live'],
  jobs: ['jobs:of:*'],
  files: ['files:list:*'],
  assets: ['assets:age'],
};
const ROWS_AT_A_TIME = 100;

/**
 * Reads all records, or those of some kinds, one kind after the other. Servers may write meanwhile; `RECORD_KINDS`
 * says why the result fits together. Done prompts come first, in the order of history.
 */
export async function* readRedisRecords(
  links: RedisConnections,
  kinds: readonly RecordKind[] = KINDS,
): AsyncGenerator<StoredRecord> {
  for (const kind of kinds) {
    const rowsOf = rowsReader(links, kind);
    for (const ids of chunks(await idsOf(links, kind)))
      for (const row of await rowsOf(ids)) yield { kind, row } as StoredRecord;
  }
}

/** Throws when a server or worker subscribes to channels of this Redis. */
export async function refuseRedisInUse({ commands, channels }: RedisConnections): Promise<void> {
  const listened = (await commands.pubsub('CHANNELS', `${channels}*`)) as string[];
  if (listened.length > 0)
    throw new Error('the ledger in Redis is in use: stop all servers and workers first');
}

/** Returns a function that reads the rows with some ids; for texts, all rows of some users. */
function rowsReader(
  links: RedisConnections,
  kind: RecordKind,
): (ids: readonly string[]) => Promise<readonly object[]> {
  const { commands: redis, prefix } = links;
  if (kind === 'settings' || kind === 'assetLabels') {
    const { redisKey } = RECORD_KINDS[kind];
    return async (users) => {
      const all = await Promise.all(
        users.map((user) => redis.hgetall(`${prefix}${redisKey}:${user}`)),
      );
      return users.flatMap((user, i) =>
        Object.entries(all[i] ?? {}).map(([id, valueJson]) => ({ user, id, valueJson })),
      );
    };
  }
  const table = new Table(new LedgerConnection(redis, prefix), kind);
  return (ids) => table.rows(ids);
}

/** The ids of one kind: those in its lists, in their order, and then all others. */
async function idsOf(links: RedisConnections, kind: RecordKind): Promise<readonly string[]> {
  const { commands: redis, prefix } = links;
  const ids = new Set<string>();
  for (const list of LISTS[kind] ?? [])
    for await (const key of keysLike(links, `${prefix}${list}`))
      for (const member of await redis.zrange(key, 0, '-1'))
        ids.add(member.replace(/^\d{16}:/, ''));
  const start = `${prefix}${RECORD_KINDS[kind].redisKey}:`;
  for await (const key of keysLike(links, `${start}*`)) ids.add(key.slice(start.length));
  return [...ids];
}

function* chunks<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += ROWS_AT_A_TIME) yield items.slice(i, i + ROWS_AT_A_TIME);
}
