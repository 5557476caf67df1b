import { KINDS, type RecordKind, type StoredRecord } from '../records.ts';
import { type Database, openReadOnly } from './database.ts';
import { LONG_COLUMNS, LongTexts, jobOwner } from './long-texts.ts';
import { SqlColumns } from './sql-columns.ts';
import { Writer } from './writer.ts';

/** The order of each kind that is not read in the order of insertion. */
const ORDERS: { readonly [kind in RecordKind]?: string } = {
  // History is in the order of ends.
  prompts: `ORDER BY state <> 'done', CASE WHEN state = 'done' THEN user END, done_seq, rowid`,
};

/**
 * Reads all records, or those of some kinds, as they are at one moment, while a server may write. Done prompts come
 * first, in the order of history.
 */
export async function* readSqliteRecords(
  path: string,
  kinds: readonly RecordKind[] = KINDS,
): AsyncGenerator<StoredRecord> {
  const db = openReadOnly(path);
  // The first statement of a transaction takes the snapshot that the others read.
  db.exec('BEGIN');
  try {
    for (const kind of kinds) yield* rowsOf(db, kind);
  } finally {
    // The package keeps a closed connection, with its snapshot, until its statements are garbage collected.
    db.exec('ROLLBACK');
    db.close();
  }
}

function* rowsOf(db: Database, kind: RecordKind): Generator<StoredRecord> {
  const texts = new LongTexts(db, new Writer(db));
  const sql = new SqlColumns(kind);
  const rows = db.prepare(
    `SELECT ${sql.select()} FROM ${sql.table} ${ORDERS[kind] ?? 'ORDER BY rowid'}`,
  );
  for (const values of rows.iterate()) {
    const record = { kind, row: { ...sql.row(values) } } as StoredRecord;
    if (record.kind === 'prompts')
      texts.withTexts(record.row.key, record.row, LONG_COLUMNS.prompts);
    if (record.kind === 'jobs')
      texts.withTexts(jobOwner(record.row.id), record.row, LONG_COLUMNS.jobs);
    yield record;
  }
}
