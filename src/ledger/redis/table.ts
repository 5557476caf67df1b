import { randomUUID } from 'node:crypto';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { ColumnType, Columns } from '../columns.ts';
import { type LedgerConnection, idsOf } from './connection.ts';

export type Table<Row> = ReturnType<typeof createTable<Row>>;

type Cell = string | Uint8Array | null;

/** Redis serves nothing else while it reads these, so they are few. */
const MAX_ROWS_PER_READ = 100;

/**
 * Identifies a command, so that a script recognises it when it is sent again after a lost
 * connection.
 */
export function newToken(): string {
  return randomUUID();
}

/** Rows of one kind, each a hash; a null property has no field. */
export function createTable<Row>(
  connection: LedgerConnection,
  kind: string,
  columns: Columns<Row>,
) {
  type Name = keyof Row & string;
  const names = Object.keys(columns) as Name[];
  const scripts = connection.scripts(kind, { rows: ROWS });

  function encodeCell(name: Name, value: unknown): ScriptArgument {
    if (Number.isNaN(value)) throw new Error(`${kind}s.${name} must be a number`);
    if (typeof value === 'boolean') return value ? '1' : '';
    return value instanceof Uint8Array ? Buffer.from(value) : String(value);
  }

  /** A row from the reply of `HMGET` with these names. */
  function decode(values: unknown): Row | undefined {
    const cells = values as readonly Cell[] | null;
    if (!cells || cells[0] === null) return undefined;
    const entries = names.map((name, i) => [
      name,
      decodeCell(columns[name].type, cells[i] ?? null),
    ]);
    return Object.fromEntries(entries) as Row;
  }

  /** In the order of the ids, without missing ones. */
  async function rows(ids: readonly string[]): Promise<Row[]> {
    const chunks: Promise<unknown>[] = [];
    for (let i = 0; i < ids.length; i += MAX_ROWS_PER_READ) {
      const some = ids.slice(i, i + MAX_ROWS_PER_READ);
      chunks.push(connection.read(() => scripts.rows(kind, names.length, ...names, ...some)));
    }
    const found = (await Promise.all(chunks)).flat() as unknown[];
    return found.flatMap((values) => decode(values) ?? []);
  }

  async function members(index: string, from = 0, to = -1): Promise<string[]> {
    const { redis, prefix } = connection;
    return connection.read(() => redis.zrange(`${prefix}${index}`, from, String(to)));
  }

  /** The rows of an index, in its order. */
  async function listed(index: string, from?: number, to?: number): Promise<Row[]> {
    return rows(await members(index, from, to));
  }

  return {
    names,
    decode,
    rows,
    listed,
    /** The same of an index whose scores may tie: see `idsOf`. */
    numbered: async (index: string, to?: number): Promise<Row[]> =>
      rows(idsOf(await members(index, 0, to))),
    /** Those with an expiry at or before `nowMs`. */
    expiredBy: async (nowMs: number): Promise<Row[]> => {
      const index = `${connection.prefix}${kind}s:expiry`;
      return rows(
        await connection.read(() => connection.redis.zrangebyscore(index, '-inf', nowMs)),
      );
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
    get: async (id: string): Promise<Row | undefined> => (await rows([id]))[0],
    /** The first, or last, row of an index. */
    first: async (index: string) => (await listed(index, 0, 0))[0],
    last: async (index: string) => (await listed(index, -1, -1))[0],
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
