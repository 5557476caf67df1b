import { randomUUID } from 'node:crypto';
import type { ScriptArgument, Scripts } from '../../redis/redis-scripts.ts';
import type { ColumnType, Columns } from '../columns.ts';
import { RECORD_KINDS, type RecordKind, type RecordRows } from '../records.ts';
import { type LedgerConnection, failure, idsOf } from './connection.ts';

type Cell = string | Uint8Array | null;

/** The limit is low because Redis runs no other command while it reads these rows. */
const MAX_ROWS_PER_READ = 100;

/** A token for one command, by which a script recognises the command when it is sent again after a lost connection. */
export function newToken(): string {
  return randomUUID();
}

type Name<Kind extends RecordKind> = keyof RecordRows[Kind] & string;

/** The rows of one kind. Each is a hash, in which a null property has no field. */
export class Table<Kind extends RecordKind> {
  readonly names: readonly Name<Kind>[];
  readonly #connection: LedgerConnection;
  readonly #key: string;
  readonly #columns: Columns<RecordRows[Kind]>;
  readonly #scripts: Scripts<'rows'>;

  constructor(connection: LedgerConnection, kind: Kind) {
    const { redisKey, columns } = RECORD_KINDS[kind];
    this.#connection = connection;
    this.#key = redisKey;
    this.#columns = columns as unknown as Columns<RecordRows[Kind]>;
    this.names = Object.keys(columns) as Name<Kind>[];
    this.#scripts = connection.scripts(redisKey, { rows: ROWS }, 'read');
  }

  async get(id: string): Promise<RecordRows[Kind] | undefined> {
    return (await this.rows([id]))[0];
  }

  /** The rows with these ids, in their order; missing rows are left out. */
  async rows(ids: readonly string[]): Promise<RecordRows[Kind][]> {
    const chunks: Promise<Cell[][]>[] = [];
    for (let i = 0; i < ids.length; i += MAX_ROWS_PER_READ) {
      const some = ids.slice(i, i + MAX_ROWS_PER_READ);
      chunks.push(this.#scripts.rows(this.#key, this.names.length, ...this.names, ...some));
    }
    const found = (await Promise.all(chunks)).flat();
    return found.flatMap((cells) => this.decode(cells) ?? []);
  }

  /** Makes a row from the reply of `HMGET` with these names; `undefined` when there is no such row. */
  decode(
    cells: readonly Cell[] | null,
    names: readonly Name<Kind>[] = this.names,
  ): RecordRows[Kind] | undefined {
    if (!cells || cells[0] === null) return undefined;
    const entries = names.map((name, i) => [
      name,
      decodeCell(this.#columns[name].type, cells[i] ?? null),
    ]);
    return Object.fromEntries(entries) as RecordRows[Kind];
  }

  /** The rows of an index, in its order. */
  async listed(index: string, from?: number, to?: number): Promise<RecordRows[Kind][]> {
    return this.rows(await this.#members(index, from, to));
  }

  /** Like `listed`, for an index whose scores may be equal: see `idsOf`. */
  async numbered(index: string, to?: number): Promise<RecordRows[Kind][]> {
    return this.rows(idsOf(await this.#members(index, 0, to)));
  }

  /** The first row of an index, and the last one; `undefined` when the index is empty. */
  async first(index: string): Promise<RecordRows[Kind] | undefined> {
    return (await this.listed(index, 0, 0))[0];
  }

  async last(index: string): Promise<RecordRows[Kind] | undefined> {
    return (await this.listed(index, -1, -1))[0];
  }

  /** The rows whose expiry is at or before `nowMs`. */
  async expiredBy(nowMs: number): Promise<RecordRows[Kind][]> {
    const { redis, prefix, read } = this.#connection;
    const index = `${prefix}${this.#key}s:expiry`;
    return this.rows(await read(() => redis.zrangebyscore(index, '-inf', nowMs)));
  }

  /** The arguments for the Lua function `set`, for a whole row or a change of one. */
  fields(values: Partial<RecordRows[Kind]>): ScriptArgument[] {
    const changed = this.names.filter((name) => values[name] !== undefined);
    const stored = changed.filter((name) => values[name] !== null);
    const removed = changed.filter((name) => values[name] === null);
    return [
      stored.length,
      ...stored.flatMap((name) => [name, this.#encodeCell(name, values[name])]),
      ...removed,
    ];
  }

  #members(index: string, from = 0, to = -1): Promise<string[]> {
    const { redis, prefix, read } = this.#connection;
    return read(() => redis.zrange(`${prefix}${index}`, from, String(to)));
  }

  #encodeCell(name: Name<Kind>, value: unknown): ScriptArgument {
    if (Number.isNaN(value)) throw failure('written', `${this.#key}s.${name} must be a number`);
    if (typeof value === 'boolean') return value ? '1' : '';
    return value instanceof Uint8Array ? Buffer.from(value) : String(value);
  }
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
