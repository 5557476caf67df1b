import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lru-size.ts';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { ColumnType, Columns } from '../columns.ts';
import { type LedgerConnection, failure, idsOf } from './connection.ts';

export type Table<Row> = ReturnType<typeof createTable<Row>>;

type Cell = string | Uint8Array | null;

/** Redis serves nothing else while it reads these, so they are few. */
const MAX_ROWS_PER_READ = 100;
/** So many ids of each kind are remembered with the partition that has their row. */
const MAX_REMEMBERED = 100_000;

/**
 * Identifies a command, so that a script recognises it when it is sent again after a lost
 * connection.
 */
export function newToken(): string {
  return randomUUID();
}

/** Rows of one kind, each a hash; a null property has no field. `prefix`: the partition that has them. */
export function createTable<Row>(
  connection: LedgerConnection,
  kind: string,
  columns: Columns<Row>,
) {
  type Name = keyof Row & string;
  const names = Object.keys(columns) as Name[];
  const { redis, all, read } = connection;
  const scripts = connection.scripts(kind, { rows: ROWS }, 'read');

  function encodeCell(name: Name, value: unknown): ScriptArgument {
    if (Number.isNaN(value)) throw failure('written', `${kind}s.${name} must be a number`);
    if (typeof value === 'boolean') return value ? '1' : '';
    return value instanceof Uint8Array ? Buffer.from(value) : String(value);
  }

  /** A row from the reply of `HMGET` with these names. */
  function decode(cells: readonly Cell[] | null, some: readonly Name[] = names): Row | undefined {
    if (!cells || cells[0] === null) return undefined;
    const entries = some.map((name, i) => [name, decodeCell(columns[name].type, cells[i] ?? null)]);
    return Object.fromEntries(entries) as Row;
  }

  /** In the order of the ids, without missing ones. */
  async function rows(prefix: string, ids: readonly string[]): Promise<Row[]> {
    const chunks: Promise<Cell[][]>[] = [];
    for (let i = 0; i < ids.length; i += MAX_ROWS_PER_READ) {
      const some = ids.slice(i, i + MAX_ROWS_PER_READ);
      chunks.push(scripts.rows(prefix, kind, names.length, ...names, ...some));
    }
    const found = (await Promise.all(chunks)).flat();
    return found.flatMap((cells) => decode(cells) ?? []);
  }

  const find = async (prefix: string, id: string) => (await rows(prefix, [id]))[0];

  async function members(prefix: string, index: string, from = 0, to = -1): Promise<string[]> {
    return read(() => redis.zrange(`${prefix}${index}`, from, String(to)));
  }

  /** The rows of an index, in its order. */
  async function listed(prefix: string, index: string, from?: number, to?: number): Promise<Row[]> {
    return rows(prefix, await members(prefix, index, from, to));
  }

  return {
    ...createPlaces(connection, find),
    names,
    decode,
    rows,
    listed,
    find,
    /** The same as `listed` of an index whose scores may tie: see `idsOf`. */
    numbered: async (prefix: string, index: string, to?: number): Promise<Row[]> =>
      rows(prefix, idsOf(await members(prefix, index, 0, to))),
    /** Those with an expiry at or before `nowMs`. */
    expiredBy: async (nowMs: number): Promise<Row[]> => {
      const expired = await all(async (prefix) => {
        const index = `${prefix}${kind}s:expiry`;
        return rows(prefix, await read(() => redis.zrangebyscore(index, '-inf', nowMs)));
      });
      return expired.flat();
    },
    /** The arguments for `set` of the scripts, for a whole row or a change of one. */
    fields(values: Partial<Row>): ScriptArgument[] {
      const changed = names.filter((name) => values[name] !== undefined);
      const stored = changed.filter((name) => values[name] !== null);
      const removed = changed.filter((name) => values[name] === null);
      return [
        stored.length,
        ...stored.flatMap((name) => [name, encodeCell(name, values[name])]),
        ...removed,
      ];
    },
    /** The first, or last, row of an index. */
    first: async (prefix: string, index: string) => (await listed(prefix, index, 0, 0))[0],
    last: async (prefix: string, index: string) => (await listed(prefix, index, -1, -1))[0],
  };
}

/** The partitions of rows by their ids: callers do not always know the user. */
function createPlaces<Row>(
  { prefixes, of, all }: LedgerConnection,
  find: (prefix: string, id: string) => Promise<Row | undefined>,
) {
  const known = new LRUCache<string, string>(atMost(MAX_REMEMBERED));
  const [only, ...others] = prefixes;
  const placeOf = (id: string): string | undefined => (others.length === 0 ? only : known.get(id));

  /** Reads the row; from now on it is found there. */
  async function get(id: string): Promise<Row | undefined> {
    const place = placeOf(id);
    if (place !== undefined) return find(place, id);
    const found = await all((prefix) => find(prefix, id));
    const at = found.findIndex((row) => row !== undefined);
    known.set(id, prefixes[at]);
    return found[at];
  }

  return {
    get,
    /** The partition of a new row. */
    placeNew(id: string, user: string): string {
      if (others.length > 0) known.set(id, of(user));
      return of(user);
    },
    /** Acts where the row is; for one that does not exist anywhere: what is done there has no effect. */
    async at<Reply>(id: string, act: (prefix: string) => Promise<Reply>): Promise<Reply> {
      if (placeOf(id) === undefined) await get(id);
      return act(placeOf(id) ?? of(''));
    },
  };
}

function decodeCell(kind: ColumnType, cell: Cell): unknown {
  if (cell === null || kind === 'bytes') return cell;
  const text = cell.toString();
  if (kind === 'text') return text;
  return kind === 'number' ? Number(text) : text === '1';
}

const ROWS = `
local kind, n, out = ARGV[1], tonumber(ARGV[2]), {}
local names = {unpack(ARGV, 3, n + 2)}
for i = n + 3, #ARGV do
  out[#out + 1] = call('HMGET', P .. kind .. ':' .. ARGV[i], unpack(names))
end
return out`;
