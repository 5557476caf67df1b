import type { RedisConnections } from '../../lib/redis.ts';
import { CLAIMED_ASSET_COLUMNS, type Columns } from '../columns.ts';
import {
  type LedgerRecords,
  RECORD_KINDS,
  type RecordKind,
  type RecordRows,
  recordId,
} from '../records.ts';
import { createLedgerConnection, joinKey } from './connection.ts';
import { createTable } from './table.ts';

/** A Redis with this key is being filled by a migration: no server may open it. */
export const MIGRATION_KEY = 'migration';

/** The hashes of each kind; settings and the keys of jobs have no columns here. */
const TABLES = {
  calls: 'call',
  modelCalls: 'model-call',
  replays: 'replay',
  assets: 'asset',
  assetKeys: 'asset-key',
  files: 'file',
  jobs: 'job',
  prompts: 'prompt',
} as const satisfies { readonly [kind in Exclude<RecordKind, 'settings' | 'jobKeys'>]: string };

const ORDERED: ReadonlySet<RecordKind> = new Set(['assets', 'files', 'jobs']);
const ROWS_AT_A_TIME = 100;
const KEYS_AT_A_TIME = 1000;

/** The records of a ledger in Redis. */
export function redisLedgerRecords({ commands: redis, prefix }: RedisConnections): LedgerRecords {
  const connection = createLedgerConnection(redis, prefix);

  /** The parts of keys after a first part, in no order. */
  async function idsOf(kind: string): Promise<string[]> {
    const start = `${prefix}${kind}:`;
    const match = `${start.replaceAll(/[\\*?[\]]/g, '\\$&')}*`;
    const found = new Set<string>();
    let cursor = '0';
    do {
      const [next, keys] = await redis.scan(cursor, 'MATCH', match, 'COUNT', KEYS_AT_A_TIME);
      for (const key of keys) found.add(key.slice(start.length));
      cursor = next;
    } while (cursor !== '0');
    return [...found];
  }

  async function inOrder(kind: string, ids: readonly string[]): Promise<string[]> {
    const numbered: [number, string][] = [];
    for (const some of chunks(ids, KEYS_AT_A_TIME)) {
      const asked = some.map((id) => redis.hget(`${prefix}${kind}:${id}`, 'seq'));
      const seqs = await Promise.all(asked);
      numbered.push(...some.map((id, i): [number, string] => [Number(seqs[i] ?? 0), id]));
    }
    return numbered.toSorted(([a], [b]) => a - b).map(([, id]) => id);
  }

  /** Done prompts of each user as history has them, then the others as they came. */
  async function promptIds(): Promise<string[]> {
    const users = (await idsOf('prompts:done')).toSorted();
    const ids: string[] = [];
    for (const user of users)
      ids.push(...(await redis.zrange(`${prefix}prompts:done:${user}`, 0, '-1')));
    return [...ids, ...(await redis.zrange(`${prefix}prompts:live`, 0, '-1'))];
  }

  async function* readTable(kind: keyof typeof TABLES): AsyncGenerator<object> {
    const name = TABLES[kind];
    const columns = kind === 'assetKeys' ? CLAIMED_ASSET_COLUMNS : RECORD_KINDS[kind].columns;
    const table = createTable<object>(connection, name, columns as Columns<object>);
    if (kind === 'prompts') return yield* rowsOf(await promptIds());
    const ids = await idsOf(name);
    if (ORDERED.has(kind)) return yield* rowsOf(await inOrder(name, ids));
    const rows: object[] = [];
    for await (const row of rowsOf(ids)) rows.push(row);
    yield* sorted(kind, rows);

    async function* rowsOf(wanted: readonly string[]): AsyncGenerator<object> {
      for (const some of chunks(wanted, ROWS_AT_A_TIME)) {
        if (kind !== 'assetKeys') {
          yield* await table.rows(some);
          continue;
        }
        for (const id of some) yield { ...ownerIn(id), ...(await table.get(id)) };
      }
    }
  }

  async function* readSettings(): AsyncGenerator<RecordRows['settings']> {
    const rows: RecordRows['settings'][] = [];
    for (const user of await idsOf('settings')) {
      const values = await redis.hgetall(`${prefix}settings:${user}`);
      rows.push(...Object.entries(values).map(([id, valueJson]) => ({ user, id, valueJson })));
    }
    yield* sorted('settings', rows);
  }

  async function* readJobKeys(): AsyncGenerator<RecordRows['jobKeys']> {
    const rows: RecordRows['jobKeys'][] = [];
    for (const id of await idsOf('key')) {
      const [claimedAtMs, jobId = null] = await redis.hmget(
        `${prefix}key:${id}`,
        'claimedAtMs',
        'jobId',
      );
      rows.push({ ...ownerIn(id), claimedAtMs: Number(claimedAtMs), jobId });
    }
    yield* sorted('jobKeys', rows);
  }

  return {
    read(kind) {
      if (kind === 'settings') return readSettings() as never;
      if (kind === 'jobKeys') return readJobKeys() as never;
      return readTable(kind as keyof typeof TABLES) as never;
    },
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
  let cursor = '0';
  do {
    const [next, keys] = await commands.scan(
      cursor,
      'MATCH',
      `${prefix}*`,
      'COUNT',
      KEYS_AT_A_TIME,
    );
    if (keys.some((key) => !EMPTY_KEYS.includes(key.slice(prefix.length)))) return false;
    cursor = next;
  } while (cursor !== '0');
  return true;
}

/** True when a server or worker listens to the channels of this Redis. */
export async function isRedisInUse({ commands, channels }: RedisConnections): Promise<boolean> {
  const listened = (await commands.pubsub('CHANNELS', `${channels}*`)) as string[];
  return listened.length > 0;
}

function sorted<Kind extends RecordKind>(kind: Kind, rows: readonly object[]): RecordRows[Kind][] {
  const withIds = (rows as RecordRows[Kind][]).map((row) => [recordId(kind, row), row] as const);
  return withIds.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
}

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
