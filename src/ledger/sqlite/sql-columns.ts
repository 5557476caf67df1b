import type { Columns } from '../columns.ts';

export type SqlValue = string | number | Uint8Array | null;

/** Makes the parts of SQL statements for one kind of record from its columns. */
export function sqlColumns<Row>(columns: Columns<Row>) {
  type Name = keyof Row & string;
  const names = Object.keys(columns) as Name[];
  const flags = names.filter((name) => columns[name].type === 'flag');
  const selected = (name: Name): string => `${columns[name].sql} AS "${name}"`;
  // A loop is faster than a callback here; a prompt writes over a hundred values.
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
    /** The columns for `SELECT`, each under the name of its property: all of them, or the given ones. */
    select: (some: readonly Name[] = names): string => some.map(selected).join(', '),
    /** `(columns) VALUES (?, …)`, for an `INSERT` that runs with `values(row)`. */
    insert: `(${sqlNames.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
    values: (row: Row): SqlValue[] => valuesOf(row, names),
    /** `column = ?, …` for an `UPDATE`, and its values. Properties that are `undefined` are not changed. */
    assignments(patch: Partial<Row>) {
      const given = names.filter((name) => patch[name] !== undefined);
      return {
        sql: given.map((name) => `${columns[name].sql} = ?`).join(', '),
        values: valuesOf(patch, given),
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
