import { DatabaseSync } from '@photostructure/sqlite';
import {
  type LedgerRecords,
  RECORD_KINDS,
  type RecordKind,
  type RecordRows,
  recordId,
} from './records.ts';
import type { Database } from '../../ledger/sqlite/database.ts';
import { longTexts } from '../../ledger/sqlite/long-texts.ts';
import { sqlColumns } from '../../ledger/sqlite/sql-columns.ts';
import { createWriter } from '../../ledger/sqlite/writer.ts';

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

/** The table of each kind. */
const TABLES = {
  settings: 'settings',
  calls: 'v1_calls',
  modelCalls: 'model_calls',
  replays: 'model_replays',
  assets: 'assets',
  assetKeys: 'asset_keys',
  files: 'files',
  jobs: 'jobs',
  jobKeys: 'keys',
  prompts: 'prompts',
} as const satisfies { readonly [kind in RecordKind]: string };

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
      const sql = sqlColumns<object>(RECORD_KINDS[kind].columns);
      const statement = db.prepare(`SELECT ${sql.select()} FROM ${TABLES[kind]} WHERE rowid = ?`);
      for (const at of rowsOf(db, kind)) {
        const found = statement.get(at);
        if (found) yield whole(kind, { ...sql.row(found) }) as never;
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
  const { select } = sqlColumns<object>(RECORD_KINDS[kind].columns);
  const found = db.prepare(`SELECT rowid AS at, ${select()} FROM ${TABLES[kind]}`).all();
  const ids = (found as { at: number }[]).map((row) => [recordId(kind, row as never), row.at]);
  return (ids as [string, number][]).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, at]) => at);
}
