import type { RedisConnections } from '../../redis/redis.ts';
import type { Columns } from '../../ledger/columns.ts';
import {
  type LedgerRecords,
  RECORD_KINDS,
  type RecordKind,
  type RecordRows,
  recordId,
} from './records.ts';
import { MIGRATION_KEY } from '../../ledger/redis/open-shared.ts';
import {
  type LedgerConnection,
  createLedgerConnection,
  joinKey,
} from '../../ledger/redis/connection.ts';
import { keysLike } from '../../ledger/redis/stored-keys.ts';
import { createTable } from '../../ledger/redis/table.ts';

/** The first part of the keys of each kind. Each key has a Redis hash. */
const NAMES = {
  settings: 'settings',
  calls: 'call',
  modelCalls: 'model-call',
  replays: 'replay',
  assets: 'asset',
  assetKeys: 'asset-key',
  files: 'file',
  jobs: 'job',
  jobKeys: 'key',
  prompts: 'prompt',
} as const satisfies { readonly [kind in RecordKind]: string };

/** The kinds whose rows have a number `seq`. */
const NUMBERED: ReadonlySet<RecordKind> = new Set(['assets', 'files', 'jobs']);
const ROWS_AT_A_TIME = 100;
const KEYS_AT_A_TIME = 1000;

/** The records of a ledger in Redis. */
export function redisLedgerRecords(links: RedisConnections): LedgerRecords {
  const { commands: redis, prefix } = links;
  const readRows = rowReader(createLedgerConnection(redis, prefix));

  async function* read(kind: RecordKind): AsyncGenerator<object> {
    const ids = await idsOf(links, kind === 'prompts' ? 'prompts:done' : NAMES[kind]);
    const isOrdered = kind === 'prompts' || NUMBERED.has(kind);
    const rows: object[] = [];
    for await (const some of readRows(kind, ids)) {
      if (isOrdered) yield* some;
      else rows.push(...some);
    }
    yield* sorted(kind, rows);
  }

  return {
    read: (kind) => read(kind) as never,
    async writeKey(kind, { user, key, ...fields }) {
      const [id, keys] = [joinKey(user, key), `${prefix}${NAMES[kind]}`];
      const cells = Object.entries(fields).flatMap(([name, value]) =>
        value === null ? [] : [name, typeof value === 'boolean' ? (value ? '1' : '') : value],
      );
      await redis.hset(`${keys}:${id}`, ...cells);
      await redis.zadd(`${keys}s:age`, fields.claimedAtMs, id);
    },
    source: async () => (await redis.get(`${prefix}${MIGRATION_KEY}`)) ?? undefined,
    setSource: async (ledgerId) => void (await redis.set(`${prefix}${MIGRATION_KEY}`, ledgerId)),
    release: async () => void (await redis.del(`${prefix}${MIGRATION_KEY}`)),
  };
}

function rowReader(connection: LedgerConnection) {
  const { redis, prefix } = connection;

  async function byNumber(name: string, ids: readonly string[]): Promise<string[]> {
    const numbers = new Map<string, number>();
    for (const some of chunks(ids, KEYS_AT_A_TIME)) {
      const read = some.map(async (id) => {
        numbers.set(id, Number(await redis.hget(`${prefix}${name}:${id}`, 'seq')));
      });
      await Promise.all(read);
    }
    return ids.toSorted((a, b) => (numbers.get(a) ?? 0) - (numbers.get(b) ?? 0));
  }

  /**
   * Returns the done prompts of each user in the order of history, then all others in the order of their submission.
   */
  async function promptIds(users: readonly string[]): Promise<string[]> {
    const ids: string[] = [];
    for (const user of users.toSorted())
      ids.push(...(await redis.zrange(`${prefix}prompts:done:${user}`, 0, '-1')));
    return [...ids, ...(await redis.zrange(`${prefix}prompts:live`, 0, '-1'))];
  }

  async function settingsOf(user: string): Promise<object[]> {
    const values = await redis.hgetall(`${prefix}settings:${user}`);
    return Object.entries(values).map(([id, valueJson]) => ({ user, id, valueJson }));
  }

  /** Returns a function that reads rows of a kind by their ids. */
  function rowsReader(kind: RecordKind): (ids: readonly string[]) => Promise<object[]> {
    if (kind === 'settings')
      return async (users) => (await Promise.all(users.map(settingsOf))).flat();
    const isKey = kind === 'assetKeys' || kind === 'jobKeys';
    const columns = Object.entries(RECORD_KINDS[kind].columns as Columns<Record<string, unknown>>);
    const stored = isKey ? columns.filter(([name]) => !(name in KEY_OWNER)) : columns;
    const table = createTable<object>(connection, NAMES[kind], Object.fromEntries(stored));
    if (!isKey) return (ids) => table.rows(ids);
    return (ids) =>
      Promise.all(ids.map(async (id) => ({ ...ownerIn(id), ...(await table.get(id)) })));
  }

  /** Reads the rows of a kind. `ids` are those of the rows; for prompts, those of the users that have done prompts. */
  return async function* readRows(
    kind: RecordKind,
    ids: readonly string[],
  ): AsyncGenerator<object[]> {
    const wanted = kind === 'prompts' ? await promptIds(ids) : ids;
    const inOrder = NUMBERED.has(kind) ? await byNumber(NAMES[kind], wanted) : wanted;
    const rowsOf = rowsReader(kind);
    for (const some of chunks(inOrder, ROWS_AT_A_TIME)) yield await rowsOf(some);
  };
}

/** Returns the ids of all keys with this name. */
async function idsOf(links: RedisConnections, name: string): Promise<readonly string[]> {
  const start = `${links.prefix}${name}:`;
  const ids = new Set<string>();
  for await (const key of keysLike(links, `${start}*`)) ids.add(key.slice(start.length));
  return [...ids];
}

/** Throws when a server or worker subscribes to channels of this Redis. */
export async function refuseRedisInUse({ commands, channels }: RedisConnections): Promise<void> {
  const listened = (await commands.pubsub('CHANNELS', `${channels}*`)) as string[];
  if (listened.length > 0)
    throw new Error('the ledger in Redis is in use: stop all servers and workers first');
}

function sorted<Kind extends RecordKind>(kind: Kind, rows: readonly object[]): RecordRows[Kind][] {
  const withIds = (rows as RecordRows[Kind][]).map((row) => [recordId(kind, row), row] as const);
  return withIds.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

/** The columns that are part of the key, and not in its hash. */
const KEY_OWNER = { user: true, key: true } as const;

/** Splits an id that `joinKey` made. */
function ownerIn(id: string): { readonly user: string; readonly key: string } {
  const bytes = Buffer.from(id);
  const colon = bytes.indexOf(':');
  const end = colon + 1 + Number(bytes.toString('latin1', 0, colon));
  return { user: bytes.toString('utf8', colon + 1, end), key: bytes.toString('utf8', end + 1) };
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
