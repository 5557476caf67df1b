import { PROMPT_COLUMNS } from '../columns.ts';
import { sqlColumns } from './sql-columns.ts';
import type { LinkedJob, PromptRow, PromptStore } from '../ledger.ts';
import { createOutlineCache } from './outlines.ts';
import { longTexts } from './long-texts.ts';
import type { Writer } from './writer.ts';
import type { Database } from './database.ts';

const SQL = sqlColumns<PromptRow>(PROMPT_COLUMNS);
const COLUMNS = SQL.select();

/** Beyond this a number does not come from the counter: a client sent it to mean last or first. */
const HIGHEST_COUNTED = 1e9;

const LONG_COLUMNS = ['graphJson', 'extraDataJson'] as const;

/** The prompts of v1, unfinished and done. */
export function promptStore(db: Database, writer: Writer): PromptStore {
  const texts = longTexts(db, writer);
  const sql = statements(db);
  const outlines = createOutlineCache(db);
  const withTexts = (found: unknown): PromptRow | undefined => {
    const row = found as PromptRow | undefined;
    return row && texts.withTexts(row.key, row, LONG_COLUMNS);
  };
  const rows = (found: unknown[]) => found.flatMap((row) => withTexts(row) ?? []);
  const insert = (row: PromptRow) => writer.writeOne(() => void sql.insert.run(...SQL.values(row)));
  const attach = (key: string, { promptId, jobId, graphJson, targetsJson }: LinkedJob) =>
    writer.writeOne(
      () => void sql.attach.run(promptId, jobId, graphJson ?? null, targetsJson, key),
    );
  /** A failed write may have been read meanwhile. */
  const invalidatingOutlines = <T>(written: Promise<T>): Promise<T> =>
    written.catch((error: unknown) => {
      outlines.forget();
      throw error;
    });
  return {
    async insert(row) {
      const isLong = texts.isLong(row, LONG_COLUMNS);
      await insert(isLong ? await texts.put(row.key, row, LONG_COLUMNS) : row);
    },
    setState: (key, state) => writer.writeOne(() => void sql.setState.run(state, key)),
    setIntent: (key, { intentJson, targetsJson }) =>
      writer.writeOne(() => void sql.setIntent.run(intentJson, targetsJson, key)),
    askCancel: (key, atMs) => writer.writeOne(() => void sql.askCancel.run(atMs, key)),
    async linkJob(key, patch) {
      if (!texts.isLong(patch, ['graphJson'])) return await attach(key, patch);
      const marked = await texts.put(key, patch, ['graphJson']);
      await attach(key, marked);
      const referenced = sql.marks.get(key) as object | undefined;
      await texts.dropOthers(key, referenced);
    },
    unlinkJob: (key, { intentJson, targetsJson }) =>
      writer.writeOne(() => void sql.detach.run(intentJson, targetsJson, key)),
    begin: (key, atMs) => writer.writeOne(() => void sql.begin.run(atMs, key)),
    remove: (key) => writer.writeOne(() => void sql.remove.run(key)),
    async finish(key, { entryJson, statusWord, startedAtMs, endedAtMs, shortened }) {
      await invalidatingOutlines(
        writer.writeOne(() => {
          const { graphJson = null, extraDataJson = null } = shortened ?? {};
          sql.finish.run({
            key,
            entryJson,
            statusWord,
            startedAtMs,
            endedAtMs,
            graphJson,
            extraDataJson,
          });
          outlines.append(key);
        }),
      );
      if (shortened) await texts.dropOthers(key, sql.marks.get(key) as object | undefined);
    },
    live: async (user) => rows(user === undefined ? sql.live.all() : sql.liveOf.all({ user })),
    find: async (user, promptId) => withTexts(sql.find.get(user, promptId)),
    findByJob: async (user, jobId) => withTexts(sql.findByJob.get(user, jobId)),
    hasJob: async (jobId) => sql.hasJob.get(jobId) !== undefined,
    async history(user, { maxItems, offset }) {
      if (maxItems !== undefined && maxItems <= 0) return [];
      // v1 returns the newest when only a maximum is given; a negative offset counts as none.
      const newest = maxItems !== undefined && (offset === undefined || offset < 0);
      if (newest) return rows(sql.newest.all(user, maxItems)).toReversed();
      return rows(sql.page.all(user, maxItems ?? -1, Math.max(0, offset ?? 0)));
    },
    outlines: async (user) => outlines.of(user),
    entries: async (keys) =>
      keys.map(
        (key) =>
          (sql.entry.get(key) as { entryJson: string | null } | undefined)?.entryJson ?? null,
      ),
    get: async (key) => withTexts(sql.get.get(key)),
    deleteHistory: (user, promptIds) =>
      invalidatingOutlines(
        writer.write(() => {
          promptIds.forEach((id) => sql.deleteDone.run(user, id));
          outlines.forget(user);
        }),
      ),
    clearHistory: (user) =>
      invalidatingOutlines(
        writer.write(() => {
          sql.clearDone.run(user);
          outlines.forget(user);
        }),
      ),
    pruneHistory: ({ count, bytes }) =>
      invalidatingOutlines(
        writer.write(() => {
          const overLimits = sql.overLimits.all(count, bytes) as { user: string }[];
          for (const { user } of overLimits) {
            sql.prune.run({ user, count, bytes });
            outlines.forget(user);
          }
        }),
      ),
    highestNumber: async () => (sql.highest.get() as { highest: number }).highest,
  };
}

function statements(db: Database) {
  const done = `FROM prompts WHERE user = ? AND state = 'done'`;
  const ended = `FROM prompts INDEXED BY prompts_done WHERE state = 'done'`;
  return {
    insert: db.prepare(`INSERT INTO prompts ${SQL.insert}`),
    setState: db.prepare(`UPDATE prompts SET state = ? WHERE key = ? AND state <> 'done'`),
    setIntent: db.prepare(`UPDATE prompts SET intent_json = ?, targets_json = ? WHERE key = ?
      AND job_id IS NULL AND state <> 'done'`),
    askCancel: db.prepare(`UPDATE prompts SET cancel_asked_at_ms = ? WHERE key = ?`),
    attach: db.prepare(`UPDATE prompts SET state = 'live', prompt_id = ?, job_id = ?,
      graph_json = coalesce(?, graph_json), targets_json = ? WHERE key = ?`),
    detach: db.prepare(`UPDATE prompts SET state = 'outbox', job_id = NULL, intent_json = ?,
      targets_json = ? WHERE key = ? AND state = 'live'`),
    begin: db.prepare(`UPDATE prompts SET started_at_ms = ? WHERE key = ?
      AND started_at_ms IS NULL AND state <> 'done'`),
    remove: db.prepare(`DELETE FROM prompts WHERE key = ?`),
    finish: db.prepare(`UPDATE prompts SET state = 'done', entry_json = :entryJson,
      status_word = :statusWord, started_at_ms = :startedAtMs, ended_at_ms = :endedAtMs,
      graph_json = coalesce(:graphJson, graph_json),
      extra_data_json = coalesce(:extraDataJson, extra_data_json),
      stored_bytes = length(CAST(:entryJson AS BLOB))
        + length(CAST(coalesce(:graphJson, graph_json) AS BLOB))
        + length(CAST(coalesce(:extraDataJson, extra_data_json) AS BLOB))
        + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM long_texts WHERE owner = :key
          AND '@' || name IN (coalesce(:graphJson, graph_json),
            coalesce(:extraDataJson, extra_data_json))),
      done_seq = (SELECT coalesce(max(done_seq), 0) + 1 FROM prompts AS all_of
        WHERE all_of.state = 'done' AND all_of.user = prompts.user) WHERE key = :key`),
    live: db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
      INDEXED BY prompts_by_id EXCEPT SELECT rowid ${ended}) ORDER BY rowid`),
    liveOf: db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
      INDEXED BY prompts_by_id WHERE user = :user EXCEPT SELECT rowid ${ended} AND user = :user)
      ORDER BY rowid`),
    find: db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND prompt_id = ?
      ORDER BY rowid DESC LIMIT 1`),
    findByJob: db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND job_id = ?`),
    hasJob: db.prepare(`SELECT 1 FROM prompts WHERE job_id = ? LIMIT 1`),
    newest: db.prepare(`SELECT ${COLUMNS} ${done} ORDER BY done_seq DESC LIMIT ?`),
    page: db.prepare(`SELECT ${COLUMNS} ${done} ORDER BY done_seq LIMIT ? OFFSET ?`),
    get: db.prepare(`SELECT ${COLUMNS} FROM prompts WHERE key = ?`),
    entry: db.prepare(
      `SELECT entry_json AS entryJson FROM prompts WHERE key = ? AND state = 'done'`,
    ),
    marks: db.prepare(`SELECT substr(graph_json, 1, 100) AS graph,
      substr(extra_data_json, 1, 100) AS extraData FROM prompts WHERE key = ?`),
    deleteDone: db.prepare(`DELETE ${done} AND prompt_id = ?`),
    clearDone: db.prepare(`DELETE ${done}`),
    overLimits: db.prepare(`SELECT user FROM prompts WHERE state = 'done'
      GROUP BY user HAVING count(*) > ? OR sum(stored_bytes) > ?`),
    // Counted from the newest, which stays at any size.
    prune: db.prepare(`DELETE FROM prompts WHERE user = :user AND state = 'done' AND done_seq <=
      (SELECT max(done_seq) FROM (SELECT done_seq,
          row_number() OVER newest AS place, sum(stored_bytes) OVER newest AS total
        FROM prompts WHERE user = :user AND state = 'done' WINDOW newest AS (ORDER BY done_seq DESC))
        WHERE place > :count OR (place > 1 AND total > :bytes))`),
    highest: db.prepare(`SELECT coalesce(max(abs(number)), -1) AS highest FROM prompts
      WHERE abs(number) <= ${HIGHEST_COUNTED}`),
  };
}
