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
/** The name of the source's id in the table `identity`. */
const SOURCE = 'migrated_from';

/** The tables and order of the kinds that have an order. Other kinds are read by id. */
const ORDERED: { readonly [kind in RecordKind]?: readonly string[] } = {
  assets: ['assets ORDER BY rowid'],
  files: ['files ORDER BY rowid'],
  jobs: ['jobs ORDER BY rowid'],
  prompts: [
    `prompts WHERE state = 'done' ORDER BY user, done_seq`,
    `prompts WHERE state <> 'done' ORDER BY rowid`,
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

/** Opens a second connection to the database of a ledger. This process must have its lock. */
export function openSqliteRecords(path: string): LedgerRecords & { close(): void } {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  const texts = longTexts(db, createWriter(db));

  /** Returns the row with its long texts, which the table `long_texts` has. */
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
    async writeKey(kind, row) {
      const sql = sqlColumns<object>(RECORD_KINDS[kind].columns);
      const insert = db.prepare(`INSERT OR IGNORE INTO ${TABLES[kind]} ${sql.insert}`);
      insert.run(...sql.values(row));
    },
    async source() {
      const found = db.prepare('SELECT value FROM identity WHERE name = ?').get(SOURCE);
      return (found as { value: string } | undefined)?.value;
    },
    async setSource(ledgerId) {
      db.prepare('INSERT OR REPLACE INTO identity VALUES (?, ?)').run(SOURCE, ledgerId);
    },
    // Nothing to do: servers find the database by its name, which it gets at the end.
    release: async () => {},
    close: () => db.close(),
  };
}

function rowsOf(db: Database, kind: RecordKind): readonly number[] {
  const ordered = ORDERED[kind];
  if (ordered) {
    const found = ordered.flatMap((rows) => db.prepare(`SELECT rowid AS at FROM ${rows}`).all());
    return (found as { at: number }[]).map(({ at }) => at);
  }
  const { select } = sqlColumns<object>(RECORD_KINDS[kind].columns);
  const found = db.prepare(`SELECT rowid AS at, ${select()} FROM ${TABLES[kind]}`).all();
  const ids = (found as { at: number }[]).map((row) => [recordId(kind, row as never), row.at]);
  return (ids as [string, number][]).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, at]) => at);
}
