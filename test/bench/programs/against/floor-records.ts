// The ledger of a floor: one commit before the answer, one before the last frame.
import { fdatasync, openSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';

/** The tables that get a row before the answer, and those that get one at the end. */
export type Tables = { readonly first: readonly string[]; readonly last: readonly string[] };

export function openRecords(path: string, { first, last }: Tables) {
  const db = new DatabaseSync(path);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  for (const table of [...first, ...last])
    db.exec(`CREATE TABLE ${table} (id TEXT PRIMARY KEY, body TEXT, entry TEXT) STRICT`);
  const log = openSync(`${path}-wal`, 'r+');
  const inserts = (tables: readonly string[]) =>
    tables.map((table) => db.prepare(`INSERT INTO ${table} (id, body) VALUES (?, ?)`));
  const begun = inserts(first);
  const ended = inserts(last);
  const ends = first.map((table) => db.prepare(`UPDATE ${table} SET entry = ? WHERE id = ?`));
  const inTransaction = (work: () => void): void => {
    db.exec('BEGIN');
    work();
    db.exec('COMMIT');
  };
  return {
    insert: (id: string, body: string) =>
      inTransaction(() => begun.forEach((statement) => statement.run(id, body))),
    finish: (id: string, entry: string) =>
      inTransaction(() => {
        ended.forEach((statement) => statement.run(id, entry));
        ends.forEach((statement) => statement.run(entry, id));
      }),
    sync: () =>
      new Promise<void>((resolve, reject) =>
        fdatasync(log, (error) => (error ? reject(error) : resolve())),
      ),
  };
}
