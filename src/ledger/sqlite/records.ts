import { DatabaseSync } from '@photostructure/sqlite';
import {
  ASSET_COLUMNS,
  CALL_COUNT_COLUMNS,
  CLAIMED_ASSET_COLUMNS,
  FILE_COLUMNS,
  JOB_COLUMNS,
  MODEL_CALL_COLUMNS,
  PROMPT_COLUMNS,
  REPLAY_COLUMNS,
} from '../columns.ts';
import { type LedgerRecords, type RecordKind, type RecordRows, recordId } from '../records.ts';
import type { Database } from './database.ts';
import { longTexts } from './long-texts.ts';
import { sqlColumns } from './sql-columns.ts';
import { createWriter } from './writer.ts';

const BUSY_TIMEOUT_MS = 10_000;
/** In the table `identity`. */
const SOURCE = 'migrated_from';

/** The statement that gives rowids in order; `undefined`: rows are read by id. */
const ORDERED: { readonly [kind in RecordKind]?: readonly string[] } = {
  assets: ['SELECT rowid AS at FROM assets ORDER BY rowid'],
  files: ['SELECT rowid AS at FROM files ORDER BY rowid'],
  jobs: ['SELECT rowid AS at FROM jobs ORDER BY rowid'],
  prompts: [
    `SELECT rowid AS at FROM prompts WHERE state = 'done' ORDER BY user, done_seq`,
    `SELECT rowid AS at FROM prompts WHERE state <> 'done' ORDER BY rowid`,
  ],
};

function columnsOf(columns: Parameters<typeof sqlColumns<object>>[0]) {
  const sql = sqlColumns<object>(columns);
  return { select: sql.select(), row: (found: unknown) => sql.row(found) };
}

const plain = (select: string) => ({ select, row: (found: unknown) => found as object });

/** The table of each kind, and its columns as properties. */
const TABLES = {
  settings: { table: 'settings', ...plain('user, id, value_json AS "valueJson"') },
  calls: { table: 'v1_calls', ...columnsOf(CALL_COUNT_COLUMNS) },
  modelCalls: { table: 'model_calls', ...columnsOf(MODEL_CALL_COLUMNS) },
  replays: { table: 'model_replays', ...columnsOf(REPLAY_COLUMNS) },
  assets: { table: 'assets', ...columnsOf(ASSET_COLUMNS) },
  assetKeys: withOwner('asset_keys'),
  files: { table: 'files', ...columnsOf(FILE_COLUMNS) },
  jobs: { table: 'jobs', ...columnsOf(JOB_COLUMNS) },
  jobKeys: {
    table: 'keys',
    ...plain('user, key, claimed_at_ms AS "claimedAtMs", job_id AS "jobId"'),
  },
  prompts: { table: 'prompts', ...columnsOf(PROMPT_COLUMNS) },
} as const satisfies { readonly [kind in RecordKind]: unknown };

function withOwner(table: string) {
  const { select, row } = columnsOf(CLAIMED_ASSET_COLUMNS);
  return { table, select: `user, key, ${select}`, row };
}

/** A second connection to the database of a ledger that this process has locked. */
export function openSqliteRecords(path: string): LedgerRecords & { close(): void } {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  const texts = longTexts(db, createWriter(db));
  const run = async (sql: string, ...values: (string | number | null)[]): Promise<void> =>
    void db.prepare(sql).run(...values);

  /** With its long texts, which are stored beside it. */
  function whole(kind: RecordKind, row: object): object {
    if (kind === 'prompts') {
      const { key } = row as RecordRows['prompts'];
      return texts.withTexts(key, row as RecordRows['prompts'], ['graphJson', 'extraDataJson']);
    }
    if (kind !== 'jobs') return row;
    const { id } = row as RecordRows['jobs'];
    return texts.withTexts(`job ${id}`, row as RecordRows['jobs'], [
      'workflowJson',
      'provenanceJson',
    ]);
  }

  return {
    async *read(kind) {
      const { table, select, row } = TABLES[kind];
      const statement = db.prepare(`SELECT ${select} FROM ${table} WHERE rowid = ?`);
      for (const at of rowsOf(db, kind)) {
        const found = statement.get(at);
        if (found) yield whole(kind, { ...row(found) }) as never;
      }
    },
    writeJobKey: ({ user, key, claimedAtMs, jobId }) =>
      run('INSERT OR IGNORE INTO keys VALUES (?, ?, ?, ?)', user, key, claimedAtMs, jobId),
    writeAssetKey: ({ user, key, fingerprint, assetId, createdNew, claimedAtMs }) =>
      run(
        `INSERT OR IGNORE INTO asset_keys (user, key, fingerprint, asset_id, created_new,
          claimed_at_ms) VALUES (?, ?, ?, ?, ?, ?)`,
        user,
        key,
        fingerprint,
        assetId,
        Number(createdNew),
        claimedAtMs,
      ),
    async source() {
      const found = db.prepare('SELECT value FROM identity WHERE name = ?').get(SOURCE);
      return (found as { value: string } | undefined)?.value;
    },
    setSource: (ledgerId) => run('INSERT OR REPLACE INTO identity VALUES (?, ?)', SOURCE, ledgerId),
    // Servers find it by its name, which it gets once it is complete.
    release: async () => {},
    close: () => db.close(),
  };
}

function rowsOf(db: Database, kind: RecordKind): readonly number[] {
  const ordered = ORDERED[kind];
  if (ordered) {
    const found = ordered.flatMap((sql) => db.prepare(sql).all() as { at: number }[]);
    return found.map(({ at }) => at);
  }
  const { table, select } = TABLES[kind];
  const found = db.prepare(`SELECT rowid AS at, ${select} FROM ${table}`).all();
  const ids = (found as { at: number }[]).map((row) => [recordId(kind, row as never), row.at]);
  return (ids as [string, number][]).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, at]) => at);
}
