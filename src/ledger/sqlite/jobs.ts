import { SqlColumns } from './sql-columns.ts';
import type { JobRow, JobStore } from '../ledger.ts';
import { LONG_COLUMNS, LongTexts, jobOwner } from './long-texts.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

const SQL = new SqlColumns('jobs');
const COLUMNS = SQL.select();

/** Must equal the condition of the index `jobs_by_expiry`. */
const ENDED = `status NOT IN ('queued', 'running', 'canceling')`;

/** The jobs of the embedded engine. */
export function jobStore(db: Database, writer: Writer): JobStore {
  const texts = new LongTexts(db, writer);
  const sql = statements(db);
  const update = SQL.updater(db);
  const withTexts = (found: unknown): JobRow | undefined => {
    const row = found as JobRow | undefined;
    return row && texts.withTexts(jobOwner(row.id), row, LONG_COLUMNS.jobs);
  };
  const rows = (found: unknown[]) => found.flatMap((row) => withTexts(row) ?? []);
  return {
    insert: createInsert(sql, writer, texts),
    update: (id, patch, durability, files) =>
      writer.write(() => update(patch, 'id = ?', id), durability, files),
    get: async (id) => withTexts(sql.get.get(id)),
    list: async (user, { limit, before }) =>
      rows(
        before === undefined ? sql.list.all(user, limit) : sql.listBefore.all(user, before, limit),
      ),
    unfinished: async () => rows(sql.unfinished.all()),
    expiredBy: async (nowMs) => rows(sql.expired.all(nowMs)),
    remove: (id) => writer.write(() => void sql.remove.run(id)),
  };
}

function createInsert(
  sql: ReturnType<typeof statements>,
  writer: Writer,
  texts: LongTexts,
): JobStore['insert'] {
  const insert: JobStore['insert'] = (row, key, durability) =>
    writer.write(() => {
      // A key that equals the id of its job needs no row of its own: the id is unique.
      if (key === row.id) return sql.insertNew.run(...SQL.values(row)).changes === 1;
      const isFree =
        key === undefined || sql.claim.run(row.user, key, row.createdAtMs).changes === 1;
      if (isFree) sql.insert.run(...SQL.values(row));
      return isFree;
    }, durability);
  return async (row, key, durability) => {
    if (!texts.isLong(row, LONG_COLUMNS.jobs)) return await insert(row, key, durability);
    const owner = jobOwner(row.id);
    const isFree = await insert(await texts.put(owner, row, LONG_COLUMNS.jobs), key, durability);
    // The job that used the key may have this id: keep the texts to which its row refers.
    if (!isFree) await texts.dropOthers(owner, sql.get.get(row.id) as object | undefined);
    return isFree;
  };
}

function statements(db: Database) {
  return {
    insert: db.prepare(`INSERT INTO jobs ${SQL.insert}`),
    insertNew: db.prepare(`INSERT INTO jobs ${SQL.insert} ON CONFLICT (id) DO NOTHING`),
    claim: db.prepare('INSERT OR IGNORE INTO keys (user, key, claimed_at_ms) VALUES (?, ?, ?)'),
    get: db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE id = ?`),
    list: db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE user = ? ORDER BY rowid DESC LIMIT ?`),
    listBefore: db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE user = ?
      AND rowid < (SELECT rowid FROM jobs WHERE id = ?) ORDER BY rowid DESC LIMIT ?`),
    unfinished: db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE rowid IN (SELECT rowid FROM jobs
      INDEXED BY jobs_by_user EXCEPT SELECT rowid FROM jobs INDEXED BY jobs_by_expiry WHERE ${ENDED})
      ORDER BY turn, rowid`),
    expired: db.prepare(`SELECT ${COLUMNS} FROM jobs WHERE expires_at_ms <= ? AND ${ENDED}`),
    remove: db.prepare('DELETE FROM jobs WHERE id = ?'),
  };
}
