import {
  END_NAMES,
  HIGHEST_COUNTED,
  OUTLINE_NAMES,
  PROMPT_COLUMNS,
  type PromptEnd,
} from '../columns.ts';
import type { Durability } from '../../lib/durability.ts';
import type { ChangedPrompts, PromptOutline, PromptRow, PromptStore } from '../ledger.ts';
import { createOutlineCache } from '../outline-cache.ts';
import type { Database } from './database.ts';
import { LONG_COLUMNS, LongTexts } from './long-texts.ts';
import { type SqlValue, SqlColumns } from './sql-columns.ts';
import type { Writer } from './writer.ts';

const SQL = new SqlColumns('prompts');
const COLUMNS = SQL.select();

const SET_END = END_NAMES.map((name) => `${PROMPT_COLUMNS[name].sql} = :${name}`).join(', ');
const NO_END: PromptEnd = Object.fromEntries(END_NAMES.map((name) => [name, null]));

/** The prompts of v1, unfinished and done. */
export function promptStore(db: Database, writer: Writer): PromptStore {
  const texts = new LongTexts(db, writer);
  /** Prepares a query whose rows have their long texts. */
  const reader = (sql: string) => {
    const statement = db.prepare(sql);
    const rowOf = (found: unknown): PromptRow | undefined => {
      const row = found as PromptRow | undefined;
      return row && texts.withTexts(row.key, row, LONG_COLUMNS.prompts);
    };
    return {
      get: (...values: SqlValue[]) => rowOf(statement.get(...values)),
      all: (...values: SqlValue[]) => statement.all(...values).flatMap((row) => rowOf(row) ?? []),
    };
  };
  const references = db.prepare(`SELECT substr(graph_json, 1, 100) AS graph,
    substr(extra_data_json, 1, 100) AS extraData FROM prompts WHERE key = ?`);
  const dropReplaced = (key: string) =>
    texts.dropOthers(key, references.get(key) as object | undefined);
  const parts = { db, writer, texts, reader, dropReplaced };
  return { ...liveStore(parts), ...lookups(parts), ...historyStore(parts) };
}

type Reader = {
  get(...values: SqlValue[]): PromptRow | undefined;
  all(...values: SqlValue[]): PromptRow[];
};

type Parts = {
  readonly db: Database;
  readonly writer: Writer;
  readonly texts: LongTexts;
  readonly reader: (sql: string) => Reader;
  /** Removes the long texts to which the row no longer refers. */
  readonly dropReplaced: (key: string) => Promise<void>;
};

const CONDITIONS = {
  unfinished: `state <> 'done'`,
  unlinked: `job_id IS NULL AND state <> 'done'`,
  live: `state = 'live'`,
} as const satisfies { readonly [only in ChangedPrompts]: string };

/** The functions that change prompts that have not ended. */
function liveStore({ db, writer, texts, dropReplaced }: Parts) {
  const insert = db.prepare(`INSERT INTO prompts ${SQL.insert}`);
  const remove = db.prepare(`DELETE FROM prompts WHERE key = ?`);
  const apply = SQL.updater(db);
  const update = (
    key: string,
    change: Partial<PromptRow>,
    condition: string,
    durability?: Durability,
  ): Promise<void> =>
    writer.write(() => apply(change, `key = ? AND ${condition}`, key), durability);
  return {
    async insert(row, durability) {
      const isLong = texts.isLong(row, LONG_COLUMNS.prompts);
      // A row without long texts is written at once: the next read sees it, even if this call is not awaited.
      const stored = isLong ? await texts.put(row.key, row, LONG_COLUMNS.prompts) : row;
      await writer.write(() => void insert.run(...SQL.values(stored)), durability);
    },
    async update(key, only, change, durability) {
      const isLong = texts.isLong(change, LONG_COLUMNS.prompts);
      const stored = isLong ? await texts.put(key, change, LONG_COLUMNS.prompts) : change;
      await update(key, stored, CONDITIONS[only], durability);
      if (isLong) await dropReplaced(key);
    },
    askCancel: (key, atMs) => update(key, { cancelAskedAtMs: atMs }, 'TRUE'),
    begin: (key, atMs) =>
      update(key, { startedAtMs: atMs }, `started_at_ms IS NULL AND state <> 'done'`, 'soon'),
    remove: (key) => writer.write(() => void remove.run(key)),
  } satisfies Partial<PromptStore>;
}

/** The functions that find prompts. */
function lookups({ db, reader }: Parts) {
  const ended = `FROM prompts INDEXED BY prompts_done WHERE state = 'done'`;
  const live = reader(`SELECT ${COLUMNS} FROM prompts WHERE rowid IN (SELECT rowid FROM prompts
    INDEXED BY prompts_by_id EXCEPT SELECT rowid ${ended}) ORDER BY rowid`);
  const ofUser = `FROM prompts WHERE rowid IN (SELECT rowid FROM prompts INDEXED BY prompts_by_id
    WHERE user = ? EXCEPT SELECT rowid ${ended} AND user = ?) ORDER BY rowid`;
  const liveOf = reader(`SELECT ${COLUMNS} ${ofUser}`);
  const liveKeys = db.prepare(`SELECT key ${ofUser}`);
  const find = reader(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND prompt_id = ?
    ORDER BY rowid DESC LIMIT 1`);
  const findByJob = reader(`SELECT ${COLUMNS} FROM prompts WHERE user = ? AND job_id = ?`);
  const hasJob = db.prepare(`SELECT 1 FROM prompts WHERE job_id = ? LIMIT 1`);
  const get = reader(`SELECT ${COLUMNS} FROM prompts WHERE key = ?`);
  const entry = db.prepare(
    `SELECT entry_json AS entryJson FROM prompts WHERE key = ? AND state = 'done'`,
  );
  const highest = db.prepare(`SELECT coalesce(max(abs(number)), -1) AS highest FROM prompts
    WHERE abs(number) <= ${HIGHEST_COUNTED}`);
  return {
    live: async (user) => (user === undefined ? live.all() : liveOf.all(user, user)),
    liveKeys: async (user) =>
      (liveKeys.all(user, user) as unknown as { key: string }[]).map(({ key }) => key),
    find: async (user, promptId) => find.get(user, promptId),
    findByJob: async (user, jobId) => findByJob.get(user, jobId),
    hasJob: async (jobId) => hasJob.get(jobId) !== undefined,
    get: async (key) => get.get(key),
    entries: async (keys) =>
      keys.map(
        (key) => (entry.get(key) as { entryJson: string | null } | undefined)?.entryJson ?? null,
      ),
    highestNumber: async () => (highest.get() as { highest: number }).highest,
  } satisfies Partial<PromptStore>;
}

/** The functions for done prompts: their end, and the history of their user. */
function historyStore({ db, writer, dropReplaced }: Parts) {
  const done = `FROM prompts WHERE user = ? AND state = 'done'`;
  const sql = historyStatements(db, done);
  const outlines = createOutlines(db);
  // They may have been read with a write that failed.
  writer.onFailure(() => outlines.invalidate());
  return {
    async finish(key, { shortened, ...outcome }, durability) {
      const { graphJson = null, extraDataJson = null } = shortened ?? {};
      const values = { key, ...NO_END, ...outcome, graphJson, extraDataJson };
      await writer.write(() => void sql.finish.run(values), durability);
      if (shortened) await dropReplaced(key);
    },
    outlines: outlines.of,
    deleteHistory: (user, promptIds) =>
      writer.write(() => {
        promptIds.forEach((id) => sql.deleteDone.run(user, id));
        outlines.invalidate(user);
      }),
    clearHistory: (user) =>
      writer.write(() => {
        sql.clearDone.run(user);
        outlines.invalidate(user);
      }),
    pruneHistory: ({ count, bytes }) =>
      writer.write(() => {
        for (const { user } of sql.overLimits.all(count, bytes) as { user: string }[]) {
          sql.prune.run({ user, count, bytes });
          outlines.invalidate(user);
        }
      }),
  } satisfies Partial<PromptStore>;
}

function historyStatements(db: Database, done: string) {
  return {
    finish: db.prepare(`UPDATE prompts SET state = 'done', ${SET_END},
      graph_json = coalesce(:graphJson, graph_json),
      extra_data_json = coalesce(:extraDataJson, extra_data_json),
      stored_bytes = length(CAST(:entryJson AS BLOB)) + coalesce(length(:nodeTimesJson), 0)
        + length(CAST(coalesce(:graphJson, graph_json) AS BLOB))
        + length(CAST(coalesce(:extraDataJson, extra_data_json) AS BLOB))
        + (SELECT coalesce(sum(length(CAST(text AS BLOB))), 0) FROM long_texts WHERE owner = :key
          AND '@' || name IN (coalesce(:graphJson, graph_json),
            coalesce(:extraDataJson, extra_data_json))),
      done_seq = (SELECT coalesce(max(done_seq), 0) + 1 FROM prompts AS all_of
        WHERE all_of.state = 'done' AND all_of.user = prompts.user) WHERE key = :key`),
    deleteDone: db.prepare(`DELETE ${done} AND prompt_id = ?`),
    clearDone: db.prepare(`DELETE ${done}`),
    overLimits: db.prepare(`SELECT user FROM prompts WHERE state = 'done'
      GROUP BY user HAVING count(*) > ? OR sum(stored_bytes) > ?`),
    // Counted from the newest prompt, which is kept at any size.
    prune: db.prepare(`DELETE FROM prompts WHERE user = :user AND state = 'done' AND done_seq <=
      (SELECT max(done_seq) FROM (SELECT done_seq,
          row_number() OVER newest AS place, sum(stored_bytes) OVER newest AS total
        FROM prompts WHERE user = :user AND state = 'done' WINDOW newest AS (ORDER BY done_seq DESC))
        WHERE place > :count OR (place > 1 AND total > :bytes))`),
  };
}

function createOutlines(db: Database) {
  const after = db.prepare(`SELECT ${SQL.select(OUTLINE_NAMES)}, stored_bytes AS storedBytes
    FROM prompts INDEXED BY prompts_done WHERE user = ? AND state = 'done' AND done_seq > ?
    ORDER BY done_seq`);
  const newest = db.prepare(`SELECT coalesce(max(done_seq), 0) AS last FROM prompts
    INDEXED BY prompts_done WHERE user = ? AND state = 'done'`);
  return createOutlineCache<{ readonly last: number }>((user, mark) => {
    const outlines = after.all(user, mark?.last ?? 0) as unknown as PromptOutline[];
    const { last } = newest.get(user) as { readonly last: number };
    return { mark: { last }, isWhole: mark === undefined, outlines };
  });
}
