// One map of columns serves both ledgers: it matches the schema, and a new column needs no migration.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test } from 'vitest';
import * as columns from '../../src/ledger/columns.ts';
import type { Column } from '../../src/ledger/columns.ts';
import { addMissingColumns, sqlColumns } from '../../src/ledger/sqlite/sql-columns.ts';
import { openSqliteLedger } from '../../src/ledger/sqlite/sqlite-ledger.ts';

const TABLES = {
  prompts: columns.PROMPT_COLUMNS,
  files: columns.FILE_COLUMNS,
  jobs: columns.JOB_COLUMNS,
  assets: columns.ASSET_COLUMNS,
  asset_keys: columns.CLAIMED_ASSET_COLUMNS,
  model_replays: columns.REPLAY_COLUMNS,
  model_calls: columns.MODEL_CALL_COLUMNS,
  v1_calls: columns.CALL_COUNT_COLUMNS,
} as const satisfies { readonly [table: string]: { readonly [name: string]: Column } };

async function newDatabase(): Promise<string> {
  const dir = await mkdtemp(path.join(tmpdir(), 'holdover-columns-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return path.join(dir, 'ledger.db');
}

test('every mapped column is in the schema', async () => {
  const file = await newDatabase();
  await openSqliteLedger({ path: file }).close();
  const db = new DatabaseSync(file);
  onTestFinished(() => db.close());
  for (const [table, map] of Object.entries(TABLES)) {
    const found = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
    const names = (found as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(Object.values(map).map(({ sql }) => sql)));
  }
});

test('a column that a newer version adds is added once, and is empty in older rows', () => {
  const db = new DatabaseSync(':memory:');
  onTestFinished(() => db.close());
  db.exec(`CREATE TABLE notes (id TEXT PRIMARY KEY); INSERT INTO notes VALUES ('old')`);
  const map = {
    id: { type: 'text', sql: 'id' },
    pinned: { type: 'flag', sql: 'is_pinned', added: 'INTEGER NOT NULL DEFAULT 0' },
    title: { type: 'text', sql: 'title', added: 'TEXT' },
  } as const;
  addMissingColumns(db, 'notes', map);
  addMissingColumns(db, 'notes', map);
  const sql = sqlColumns<{ id: string; pinned: boolean; title: string | null }>(map);
  const insert = db.prepare(`INSERT INTO notes ${sql.insert}`);
  insert.run(...sql.values({ id: 'new', pinned: true, title: 'a' }));
  const rows = db.prepare(`SELECT ${sql.select()} FROM notes ORDER BY id DESC`).all();
  expect(rows.map((row) => sql.row(row))).toEqual([
    { id: 'old', pinned: false, title: null },
    { id: 'new', pinned: true, title: 'a' },
  ]);
});

test('an update names the properties that are given, null included', () => {
  const sql = sqlColumns<{ id: string; title: string | null }>({
    id: { type: 'text', sql: 'id' },
    title: { type: 'text', sql: 'the_title' },
  });
  expect(sql.assignments({ title: null })).toEqual({ sql: 'the_title = ?', values: [null] });
  expect(sql.assignments({})).toEqual({ sql: '', values: [] });
});
