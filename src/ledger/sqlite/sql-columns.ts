import type { StatementSyncInstance } from '@photostructure/sqlite';
import type { Columns } from '../columns.ts';
import { RECORD_KINDS, type RecordKind, type RecordRows } from '../records.ts';
import type { Database } from './database.ts';

export type SqlValue = string | number | Uint8Array | null;

type Name<Kind extends RecordKind> = keyof RecordRows[Kind] & string;

/** The parts of SQL statements for one kind of record, from its columns. */
export class SqlColumns<Kind extends RecordKind> {
  readonly table: string;
  /** `(columns) VALUES (?, …)`, for an `INSERT` that runs with `values(row)`. */
  readonly insert: string;
  readonly #columns: Columns<RecordRows[Kind]>;
  readonly #names: readonly Name<Kind>[];
  readonly #flags: readonly Name<Kind>[];

  constructor(kind: Kind) {
    const columns = RECORD_KINDS[kind].columns as unknown as Columns<RecordRows[Kind]>;
    const names = Object.keys(columns) as Name<Kind>[];
    const sqlNames = names.map((name) => columns[name].sql);
    this.table = RECORD_KINDS[kind].table;
    this.insert = `(${sqlNames.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`;
    this.#columns = columns;
    this.#names = names;
    this.#flags = names.filter((name) => columns[name].type === 'flag');
  }

  /** The columns for `SELECT`, each under the name of its property: all of them, or the given ones. */
  select(names: readonly Name<Kind>[] = this.#names): string {
    return names.map((name) => `${this.#columns[name].sql} AS "${name}"`).join(', ');
  }

  values(row: RecordRows[Kind]): SqlValue[] {
    return valuesOf(row, this.#names);
  }

  /**
   * Returns a function that changes the rows for which `where` holds. Properties that are `undefined` stay. It prepares
   * one statement for each combination of columns; callers change few combinations.
   */
  updater(
    db: Database,
  ): (patch: Partial<RecordRows[Kind]>, where: string, ...of: SqlValue[]) => void {
    const prepared = new Map<string, StatementSyncInstance>();
    return (patch, where, ...of) => {
      const given = this.#names.filter((name) => patch[name] !== undefined);
      if (given.length === 0) return;
      const set = given.map((name) => `${this.#columns[name].sql} = ?`).join(', ');
      const sql = `UPDATE ${this.table} SET ${set} WHERE ${where}`;
      const statement = prepared.get(sql) ?? db.prepare(sql);
      prepared.set(sql, statement);
      statement.run(...valuesOf(patch, given), ...of);
    };
  }

  /** Converts the flags of a selected row to booleans. */
  row(found: unknown): RecordRows[Kind] | undefined {
    if (found === undefined || this.#flags.length === 0)
      return found as RecordRows[Kind] | undefined;
    const row = found as Record<string, unknown>;
    const flags = Object.fromEntries(this.#flags.map((name) => [name, row[name] === 1]));
    return { ...row, ...flags } as RecordRows[Kind];
  }
}

function valuesOf<Row extends object>(row: Row, names: readonly (keyof Row)[]): SqlValue[] {
  return names.map((name) => {
    const value: unknown = row[name];
    return typeof value === 'boolean' ? Number(value) : (value as SqlValue);
  });
}
