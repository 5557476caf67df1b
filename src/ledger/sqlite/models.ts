import { SqlColumns } from './sql-columns.ts';
import type { ModelCallStore, ReplayRow, ReplayStore } from '../ledger.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

const REPLAYS = new SqlColumns('replays');
const CALLS = new SqlColumns('modelCalls');

/** The idempotency keys of the model router and their stored answers. */
export function replayStore(db: Database, writer: Writer): ReplayStore {
  const sql = replayStatements(db);
  const find = (scope: string, key: string) => sql.get.get(scope, key) as ReplayRow | undefined;
  return {
    reserve: (row, freeBeforeMs) =>
      writer.write(() => {
        sql.expireOne.run(row.scope, row.key, freeBeforeMs);
        const reserved = sql.reserve.run({ ...row }).changes === 1;
        return reserved ? undefined : find(row.scope, row.key);
      }),
    settle: ({ scope, key, requestId }, end) =>
      writer.write(() => void sql.settle.run({ scope, key, requestId, ...end })),
    release: ({ scope, key, requestId }) =>
      writer.write(() => void sql.release.run({ scope, key, requestId })),
    expire: (beforeMs) => writer.write(() => void sql.expire.run(beforeMs)),
    recordedBytes: async () => (sql.bytes.get() as { n: number }).n,
  };
}

function replayStatements(db: Database) {
  // SQLite refuses parameters that a statement does not name.
  const held = 'scope = :scope AND key = :key AND request_id = :requestId';
  return {
    get: db.prepare(`SELECT ${REPLAYS.select()}
      FROM model_replays WHERE scope = ? AND key = ?`),
    expireOne: db.prepare(`DELETE FROM model_replays WHERE scope = ? AND key = ? AND at_ms < ?`),
    reserve: db.prepare(`INSERT OR IGNORE INTO model_replays (scope, key, fingerprint, request_id,
      state, at_ms) VALUES (:scope, :key, :fingerprint, :requestId, 'reserved', :atMs)`),
    settle: db.prepare(`UPDATE model_replays SET state = :state, at_ms = :atMs, status = :status,
      content_type = :contentType, body = :body, body_bytes = coalesce(length(:body), 0)
      WHERE ${held}`),
    release: db.prepare(`DELETE FROM model_replays WHERE ${held}`),
    expire: db.prepare('DELETE FROM model_replays WHERE at_ms < ?'),
    bytes: db.prepare(`SELECT coalesce(sum(body_bytes), 0) AS n FROM model_replays
      WHERE state = 'recorded'`),
  };
}

/** The audit records of the model router. */
export function modelCallStore(db: Database, writer: Writer): ModelCallStore {
  const insert = db.prepare(`INSERT INTO model_calls ${CALLS.insert}`);
  const amend = CALLS.updater(db);
  const get = db.prepare(`SELECT ${CALLS.select()} FROM model_calls WHERE request_id = ?`);
  const charged = db.prepare(`SELECT coalesce(sum(charged_cents), 0) AS n FROM model_calls
    WHERE workspace = ? AND charged_cents > 0`);
  const expire = db.prepare('DELETE FROM model_calls WHERE ended_at_ms < ? AND charged_cents = 0');
  return {
    insert: (row) => writer.write(() => void insert.run(...CALLS.values(row))),
    amend: (requestId, { errorType, chargedCents }) =>
      writer.write(() => amend({ errorType, chargedCents }, 'request_id = ?', requestId)),
    get: async (requestId) => CALLS.row(get.get(requestId)),
    chargedCents: async (workspace) => (charged.get(workspace) as { n: number }).n,
    expire: (beforeMs) => writer.write(() => void expire.run(beforeMs)),
  };
}
