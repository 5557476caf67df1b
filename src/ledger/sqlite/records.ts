import { DatabaseSync } from '@photostructure/sqlite';
import {
  KINDS,
  RECORD_KINDS,
  type RecordKind,
  type StoredRecord,
  type WriteKey,
} from '../records.ts';
import type { Database } from './database.ts';
import { longTexts } from './long-texts.ts';
import { sqlColumns } from './sql-columns.ts';
import { createWriter } from './writer.ts';

const BUSY_TIMEOUT_MS = 10_000;

/** The order of each kind that is not read in the order of insertion. */
const ORDERS: { readonly [kind in RecordKind]?: string } = {
  // History is in the order of ends.
  prompts: `ORDER BY state <> 'done', CASE WHEN state = 'done' THEN user END, done_seq, rowid`,
};

/**
 * Reads all records as they are at one moment, while a server may write. Done prompts come first, in the order of
 * history.
 */
export async function* readSqliteRecords(path: string): AsyncGenerator<StoredRecord> {
  const db = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  // The first statement of a transaction takes the snapshot that the others read.
  db.exec('BEGIN');
  try {
    for (const kind of KINDS) yield* rowsOf(db, kind);
  } finally {
    // The package keeps a closed connection, with its snapshot, until its statements are garbage collected.
    db.exec('ROLLBACK');
    db.close();
  }
}

function* rowsOf(db: Database, kind: RecordKind): Generator<StoredRecord> {
  const texts = longTexts(db, createWriter(db));
  const { columns, table } = RECORD_KINDS[kind];
  const found = db.prepare(`SELECT name FROM pragma_table_info('${table}')`).all();
  const existing = new Set((found as { name: string }[]).map(({ name }) => name));
  // A column that this version adds exists once a server of this version has started.
  const present = Object.entries(columns).filter(([, { sql }]) => existing.has(sql));
  const sql = sqlColumns<object>(Object.fromEntries(present));
  const rows = db.prepare(
    `SELECT ${sql.select()} FROM ${table} ${ORDERS[kind] ?? 'ORDER BY rowid'}`,
  );
  for (const values of rows.iterate()) {
    const record = { kind, row: { ...sql.row(values) } } as StoredRecord;
    if (record.kind === 'prompts')
      texts.withTexts(record.row.key, record.row, ['graphJson', 'extraDataJson']);
    if (record.kind === 'jobs')
      texts.withTexts(`job ${record.row.id}`, record.row, ['workflowJson', 'provenanceJson']);
    yield record;
  }
}

/** Opens a second connection to a database, to store single-use keys and the id of the ledger. */
export function openKeyWriter(path: string) {
  const db = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  // A commit then writes to the operating system only; closing the ledger syncs the file.
  db.exec('PRAGMA synchronous = NORMAL');
  const writeKey: WriteKey = async (kind, row) => {
    const { columns, table } = RECORD_KINDS[kind];
    const sql = sqlColumns<object>(columns);
    db.prepare(`INSERT INTO ${table} ${sql.insert}`).run(...sql.values(row));
  };
  return {
    writeKey,
    setLedgerId: (id: string): void =>
      void db.prepare(`UPDATE identity SET value = ? WHERE name = 'id'`).run(id),
    close(): void {
      if (db.isOpen) db.close();
    },
  };
}
