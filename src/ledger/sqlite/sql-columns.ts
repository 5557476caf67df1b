import type { Column, Columns } from '../columns.ts';
import type { Database } from './database.ts';

export type SqlValue = string | number | Uint8Array | null;

/** The SQL of one kind of record, made from its columns. */
export function sqlColumns<Row>(columns: Columns<Row>) {
  type Name = keyof Row & string;
  const names = Object.keys(columns) as Name[];
  const flags = names.filter((name) => columns[name].type === 'flag');
  const selected = (name: Name): string => `${columns[name].sql} AS "${name}"`;
  // A loop and no callback: a prompt writes over a hundred values.
  const valuesOf = (row: Partial<Row>, given: readonly Name[]): SqlValue[] => {
    const values: SqlValue[] = [];
    for (const name of given) {
      const value: unknown = row[name];
      values.push(typeof value === 'boolean' ? Number(value) : (value as SqlValue));
    }
    return values;
  };
  const sqlNames = names.map((name) => columns[name].sql);
  return {
    /** Columns under the names of their properties, for `SELECT`; all of them, or those named. */
    select: (some: readonly Name[] = names): string => some.map(selected).join(', '),
    /** `(columns) VALUES (?, …)`, for an `INSERT` that runs with `values(row)`. */
    insert: `(${sqlNames.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    values: (row: Row): SqlValue[] => valuesOf(row, names),
    /** `column = ?, …` for an `UPDATE`, and its values; properties that are `undefined` stay as they are. */
    assignments(patch: Partial<Row>) {
      const given = names.filter((name) => patch[name] !== undefined);
      return {
        sql: given.map((name) => `${columns[name].sql} = ?`).join(', '),
        values: valuesOf(patch, given),
      };
    },
    /** A selected row, its flags as booleans. */
    row(found: unknown): Row | undefined {
      if (found === undefined || flags.length === 0) return found as Row | undefined;
      const row = found as Record<string, unknown>;
      return { ...row, ...Object.fromEntries(flags.map((name) => [name, row[name] === 1])) } as Row;
    },
  };
}

/** Adds the columns that a table of an earlier version does not have; older versions ignore them. */
export function addMissingColumns(
  db: Database,
  table: string,
  columns: { readonly [name: string]: Column },
): void {
  const found = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
  const existing = new Set((found as { name: string }[]).map(({ name }) => name));
  for (const { sql, added } of Object.values(columns)) {
    if (!existing.has(sql) && added !== undefined) {
      db.exec(`ALTER TABLE ${table} ADD COLUMN ${sql} ${added}`);
    }
  }
}
