import { existsSync } from 'node:fs';
import type { CallCount, CallStore } from '../ledger.ts';
import { SqlColumns } from './sql-columns.ts';
import type { Writer } from './writer.ts';
import { type Database, readDatabase } from './database.ts';

const SQL = new SqlColumns('calls');

const LIST = `SELECT ${SQL.select()} FROM v1_calls ORDER BY last_at_ms`;

/** Counts of v1 calls by client. */
export function callCountStore(db: Database, writer: Writer): CallStore {
  const add = db.prepare(`INSERT INTO v1_calls ${SQL.insert}
    ON CONFLICT (user, agent, client_id, route) DO UPDATE SET count = count + excluded.count,
    first_at_ms = min(first_at_ms, excluded.first_at_ms),
    last_at_ms = max(last_at_ms, excluded.last_at_ms)`);
  const list = db.prepare(LIST);
  const expire = db.prepare('DELETE FROM v1_calls WHERE last_at_ms < ?');
  return {
    add: (rows) => writer.write(() => rows.forEach((row) => add.run(...SQL.values(row)))),
    list: async () => list.all() as unknown as CallCount[],
    expire: (beforeMs) => writer.write(() => void expire.run(beforeMs)),
  };
}

/** Reads the counts of a ledger that another process may have open; `undefined` when there is no file. */
export function readCallCounts(path: string): readonly CallCount[] | undefined {
  if (!existsSync(path)) return undefined;
  return readDatabase(path, (db) => db.prepare(LIST).all() as unknown as CallCount[]);
}
