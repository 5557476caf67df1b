import { randomUUID } from 'node:crypto';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { ColumnType, Columns } from '../columns.ts';
import { RECORD_KINDS, type RecordKind, type RecordRows } from '../records.ts';
import { type LedgerConnection, failure, idsOf } from './connection.ts';

export type Table<Kind extends RecordKind> = ReturnType<typeof createTable<Kind>>;

type Cell = string | Uint8Array | null;

/** The limit is low because Redis runs no other command while it reads these rows. */
const MAX_ROWS_PER_READ = 100;

/** A token for one command, by which a script recognises the command when it is sent again after a lost connection. */
export function newToken(): string {
  return randomUUID();
}

/** The rows of one kind. Each is a hash, in which a null property has no field. */
export function createTable<Kind extends RecordKind>(connection: LedgerConnection, kind: Kind) {
  type Row = RecordRows[Kind];
  type Name = keyof Row & string;
  const { redisKey } = RECORD_KINDS[kind];
  const columns = RECORD_KINDS[kind].columns as unknown as Columns<Row>;
  const names = Object.keys(columns) as Name[];
  const { redis, prefix, read } = connection;
  const scripts = connection.scripts(redisKey, { rows: ROWS }, 'read');

  function encodeCell(name: Name, value: unknown): ScriptArgument {
    if (Number.isNaN(value)) throw failure('written', `${redisKey}s.${name} must be a number`);
    if (typeof value === 'boolean') return value ? '1' : '';
    return value instanceof Uint8Array ? Buffer.from(value) : String(value);
  }

  /** Makes a row from the reply of `HMGET` with these names; `undefined` when there is no such row. */
  function decode(cells: readonly Cell[] | null, some: readonly Name[] = names): Row | undefined {
    if (!cells || cells[0] === null) return undefined;
    const entries = some.map((name, i) => [name, decodeCell(columns[name].type, cells[i] ?? null)]);
    return Object.fromEntries(entries) as Row;
  }

  /** The rows with these ids, in their order; missing rows are left out. */
  async function rows(ids: readonly string[]): Promise<Row[]> {
    const chunks: Promise<Cell[][]>[] = [];
    for (let i = 0; i < ids.length; i += MAX_ROWS_PER_READ) {
      const some = ids.slice(i, i + MAX_ROWS_PER_READ);
      chunks.push(scripts.rows(redisKey, names.length, ...names, ...some));
    }
    const found = (await Promise.all(chunks)).flat();
    return found.flatMap((cells) => decode(cells) ?? []);
  }

  const get = async (id: string) => (await rows([id]))[0];

  async function members(index: string, from = 0, to = -1): Promise<string[]> {
    return read(() => redis.zrange(`${prefix}${index}`, from, String(to)));
  }

  /** The rows of an index, in its order. */
  async function listed(index: string, from?: number, to?: number): Promise<Row[]> {
    return rows(await members(index, from, to));
  }

  return {
    get,
    names,
    decode,
    rows,
    listed,
    /** Like `listed`, for an index whose scores may be equal: see `idsOf`. */
    numbered: async (index: string, to?: number): Promise<Row[]> =>
      rows(idsOf(await members(index, 0, to))),
    /** The rows whose expiry is at or before `nowMs`. */
    expiredBy: async (nowMs: number): Promise<Row[]> => {
      const index = `${prefix}${redisKey}s:expiry`;
      return rows(await read(() => redis.zrangebyscore(index, '-inf', nowMs)));
    },
    /** The arguments for the Lua function `set`, for a whole row or a change of one. */
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
    /** The first row of an index, and the last one; `undefined` when the index is empty. */
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
