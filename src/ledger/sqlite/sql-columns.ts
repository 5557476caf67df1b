import type { StatementSyncInstance } from '@photostructure/sqlite';
import type { Columns } from '../columns.ts';
import { RECORD_KINDS, type RecordKind, type RecordRows } from '../records.ts';
import type { Database } from './database.ts';

export type SqlValue = string | number | Uint8Array | null;

/** Makes the parts of SQL statements for one kind of record from its columns. */
export function sqlColumns<Kind extends RecordKind>(kind: Kind) {
  type Row = RecordRows[Kind];
  type Name = keyof Row & string;
  const { table } = RECORD_KINDS[kind];
  const columns = RECORD_KINDS[kind].columns as unknown as Columns<Row>;
  const names = Object.keys(columns) as Name[];
  const flags = names.filter((name) => columns[name].type === 'flag');
  const selected = (name: Name): string => `${columns[name].sql} AS "${name}"`;
  const valuesOf = (row: Partial<Row>, given: readonly Name[]): SqlValue[] =>
    given.map((name) => {
      const value: unknown = row[name];
      return typeof value === 'boolean' ? Number(value) : (value as SqlValue);
    });
  const sqlNames = names.map((name) => columns[name].sql);
  return {
    table,
    /** The columns for `SELECT`, each under the name of its property: all of them, or the given ones. */
    select: (some: readonly Name[] = names): string => some.map(selected).join(', '),
    /** `(columns) VALUES (?, …)`, for an `INSERT` that runs with `values(row)`. */
    insert: `(${sqlNames.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    values: (row: Row): SqlValue[] => valuesOf(row, names),
    /**
     * Returns a function that changes the rows for which `where` holds. Properties that are `undefined` stay. It prepares
     * one statement for each combination of columns; callers change few combinations.
     */
    updater(db: Database) {
      const prepared = new Map<string, StatementSyncInstance>();
      return (patch: Partial<Row>, where: string, ...of: SqlValue[]): void => {
        const given = names.filter((name) => patch[name] !== undefined);
        if (given.length === 0) return;
        const set = given.map((name) => `${columns[name].sql} = ?`).join(', ');
        const sql = `UPDATE ${table} SET ${set} WHERE ${where}`;
        const statement = prepared.get(sql) ?? db.prepare(sql);
        prepared.set(sql, statement);
        statement.run(...valuesOf(patch, given), ...of);
      };
    },
    /** Converts the flags of a selected row to booleans. */
    row(found: unknown): Row | undefined {
      if (found === undefined || flags.length === 0) return found as Row | undefined;
      const row = found as Record<string, unknown>;
      return { ...row, ...Object.fromEntries(flags.map((name) => [name, row[name] === 1])) } as Row;
    },
  };
}
