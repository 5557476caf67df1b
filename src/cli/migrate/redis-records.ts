import type { Redis, RedisConnections } from '../../lib/redis.ts';
import type { Columns } from '../../ledger/columns.ts';
import {
  type LedgerRecords,
  RECORD_KINDS,
  type RecordKind,
  type RecordRows,
  recordId,
} from './records.ts';
import { MIGRATION_KEY } from '../../ledger/redis/open-shared.ts';
import { createLedgerConnection, joinKey } from '../../ledger/redis/connection.ts';
import { createTable } from '../../ledger/redis/table.ts';

/** Keys of each kind begin with this; each is a hash. */
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

/** Kinds whose rows have the number `seq`. */
const NUMBERED: ReadonlySet<RecordKind> = new Set(['assets', 'files', 'jobs']);
const ROWS_AT_A_TIME = 100;
const KEYS_AT_A_TIME = 1000;

/** The records of a ledger in Redis. */
export function redisLedgerRecords({ commands: redis, prefix }: RedisConnections): LedgerRecords {
  const connection = createLedgerConnection(redis, prefix);

  /** The parts of keys after a first part, in no order. */
  async function idsOf(name: string): Promise<string[]> {
    const found = new Set<string>();
    for await (const key of keysFrom(redis, `${prefix}${name}:`)) found.add(key);
    return [...found];
  }

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

  /** Done prompts of each user as history has them, then the others as they came. */
  async function promptIds(): Promise<string[]> {
    const ids: string[] = [];
    for (const user of (await idsOf('prompts:done')).toSorted())
      ids.push(...(await redis.zrange(`${prefix}prompts:done:${user}`, 0, '-1')));
    return [...ids, ...(await redis.zrange(`${prefix}prompts:live`, 0, '-1'))];
  }

  async function settingsOf(user: string): Promise<object[]> {
    const values = await redis.hgetall(`${prefix}settings:${user}`);
    return Object.entries(values).map(([id, valueJson]) => ({ user, id, valueJson }));
  }

  /** Reads rows of a kind by their ids. */
  function reader(kind: RecordKind): (ids: readonly string[]) => Promise<object[]> {
    if (kind === 'settings')
      return async (users) => (await Promise.all(users.map(settingsOf))).flat();
    const isKey = kind === 'assetKeys' || kind === 'jobKeys';
    const columns = Object.entries(RECORD_KINDS[kind].columns as Columns<Record<string, unknown>>);
    const stored = isKey ? columns.filter(([name]) => !(name in KEY_OWNER)) : columns;
    const table = createTable<object>(connection, NAMES[kind], Object.fromEntries(stored));
    if (!isKey) return table.rows;
    return (ids) =>
      Promise.all(ids.map(async (id) => ({ ...ownerIn(id), ...(await table.get(id)) })));
  }

  async function* read(kind: RecordKind): AsyncGenerator<object> {
    const isOrdered = kind === 'prompts' || NUMBERED.has(kind);
    const ids = kind === 'prompts' ? await promptIds() : await idsOf(NAMES[kind]);
    const inOrder = NUMBERED.has(kind) ? await byNumber(NAMES[kind], ids) : ids;
    const rowsOf = reader(kind);
    const rows: object[] = [];
    for (const some of chunks(inOrder, ROWS_AT_A_TIME)) {
      if (isOrdered) yield* await rowsOf(some);
      else rows.push(...(await rowsOf(some)));
    }
    yield* sorted(kind, rows);
  }

  return {
    read: (kind) => read(kind) as never,
    async writeJobKey({ user, key, claimedAtMs, jobId }) {
      const id = joinKey(user, key);
      const fields = jobId === null ? [] : ['jobId', jobId];
      await redis.hset(`${prefix}key:${id}`, 'claimedAtMs', claimedAtMs, ...fields);
      await redis.zadd(`${prefix}keys:age`, claimedAtMs, id);
    },
    async writeAssetKey({ user, key, ...claimed }) {
      const id = joinKey(user, key);
      const createdNew = claimed.createdNew ? '1' : '';
      await redis.hset(`${prefix}asset-key:${id}`, { ...claimed, createdNew });
      await redis.zadd(`${prefix}asset-keys:age`, claimed.claimedAtMs, id);
    },
    source: async () => (await redis.get(`${prefix}${MIGRATION_KEY}`)) ?? undefined,
    setSource: async (ledgerId) => void (await redis.set(`${prefix}${MIGRATION_KEY}`, ledgerId)),
    release: async () => void (await redis.del(`${prefix}${MIGRATION_KEY}`)),
  };
}

/** Names of keys that a Redis has before anything is recorded in it. */
const EMPTY_KEYS = ['id', 'schema'];

/** True when nothing of Holdover is in this Redis yet. */
export async function isUnusedRedis({ commands, prefix }: RedisConnections): Promise<boolean> {
  for await (const key of keysFrom(commands, prefix)) if (!EMPTY_KEYS.includes(key)) return false;
  return true;
}

/** True when a server or worker listens to the channels of this Redis. */
export async function isRedisInUse({ commands, channels }: RedisConnections): Promise<boolean> {
  const listened = (await commands.pubsub('CHANNELS', `${channels}*`)) as string[];
  return listened.length > 0;
}

/** The rest of each key that begins with this; some may come twice. */
async function* keysFrom(redis: Redis, start: string): AsyncGenerator<string> {
  const match = `${start.replaceAll(/[\\*?[\]]/g, '\\$&')}*`;
  let cursor = '0';
  do {
    const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', KEYS_AT_A_TIME);
    for (const key of keys) yield key.slice(start.length);
    cursor = next;
  } while (cursor !== '0');
}

function sorted<Kind extends RecordKind>(kind: Kind, rows: readonly object[]): RecordRows[Kind][] {
  const withIds = (rows as RecordRows[Kind][]).map((row) => [recordId(kind, row), row] as const);
  return withIds.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

/** Columns that are in the id. */
const KEY_OWNER = { user: true, key: true } as const;

/** The two parts that `joinKey` joined. */
function ownerIn(id: string): { readonly user: string; readonly key: string } {
  const bytes = Buffer.from(id);
  const colon = bytes.indexOf(':');
  const end = colon + 1 + Number(bytes.toString('latin1', 0, colon));
  return { user: bytes.toString('utf8', colon + 1, end), key: bytes.toString('utf8', end + 1) };
}

function* chunks<T>(items: readonly T[], size: number): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += size) yield items.slice(i, i + size);
}
