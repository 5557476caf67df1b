import { PROMPT_COLUMNS } from '../columns.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { LinkedJob, PromptRow, PromptStore } from '../ledger.ts';
import { type WriteTokens, NOT_LEADER } from './write-tokens.ts';
import type { ScriptArgument } from '../../lib/redis-scripts.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { createOutlines } from './outlines.ts';
import { PROMPT_SCRIPTS } from './prompts-scripts.ts';
import { createTable, newToken } from './table.ts';

/** Delay between attempts to revoke an insertion. */
const RETRY_MS = 1000;

/** The prompts of v1, unfinished and done. */
export function promptStore(
  connection: LedgerConnection,
  writeTokens: () => WriteTokens,
): PromptStore {
  const table = createTable<PromptRow>(connection, 'prompt', PROMPT_COLUMNS);
  const lua = connection.scripts('prompts', PROMPT_SCRIPTS);
  const { write, ask, read, redis, prefix } = connection;
  const ids = (index: string, from: number, to: number): Promise<string[]> =>
    read(() => redis.zrange(`${prefix}prompts:${index}`, from, String(to)));
  const doneRows = async (user: string, { from = 0, to = -1 }): Promise<PromptRow[]> =>
    table.rows(await ids(`done:${user}`, from, to));
  type LeaderAct = 'setState' | 'setIntent' | 'attach' | 'detach' | 'begin' | 'remove' | 'finish';
  async function writeAsLeader(
    act: LeaderAct,
    key: string,
    ...args: ScriptArgument[]
  ): Promise<void> {
    const token = writeTokens().token(key);
    const reply = await ask(() => lua[act](key, token, ...args));
    if (reply === NOT_LEADER) throw writeTokens().refused(key, token);
  }
  return {
    async insert(row) {
      const mark = newToken();
      const leader = writeTokens().token(row.key);
      const insert = () => lua.insert(mark, row.key, leader, ...table.fields(row));
      const reply = await ask(insert).catch((error: unknown) => {
        void retryUntilSent(connection, () => lua.revoke(mark, row.key));
        throw error;
      });
      if (reply === NOT_LEADER) throw writeTokens().refused(row.key, leader);
    },
    setState: (key, state) => writeAsLeader('setState', key, state),
    setIntent: (key, { intentJson, targetsJson }) =>
      writeAsLeader('setIntent', key, ...table.fields({ intentJson, targetsJson })),
    unlinkJob: (key, intent) =>
      writeAsLeader('detach', key, ...table.fields({ state: 'outbox', jobId: null, ...intent })),
    begin: (key, atMs) => writeAsLeader('begin', key, atMs),
    askCancel: (key, atMs) =>
      write(() => lua.change(key, ...table.fields({ cancelAskedAtMs: atMs }))),
    linkJob: (key, patch) =>
      writeAsLeader('attach', key, ...table.fields({ ...pickLink(patch), state: 'live' })),
    remove: (key) => writeAsLeader('remove', key),
    finish: (key, { shortened, ...outcome }) => {
      const row = { ...outcome, ...shortened, state: 'done' as const };
      return writeAsLeader('finish', key, ...table.fields(row));
    },
    entries: (keys) =>
      read(async () => (keys.length === 0 ? [] : entriesIn(await lua.entries(...keys)))),
    async live(user) {
      const rows = await table.rows(await ids(user === undefined ? 'live' : `live:${user}`, 0, -1));
      return rows.filter(({ state }) => state !== 'done');
    },
    find: (user, promptId) => table.last(`prompts:id:${joinKey(user, promptId)}`),
    findByJob: (user, jobId) => table.first(`prompts:job:${joinKey(user, jobId)}`),
    hasJob: async (jobId) => (await read(() => lua.hasJob(jobId))) === 1,
    async history(user, { maxItems, offset }) {
      if (maxItems !== undefined && maxItems <= 0) return [];
      // v1 returns the newest when only a maximum is given; a negative offset counts as none.
      if (maxItems !== undefined && (offset === undefined || offset < 0))
        return doneRows(user, { from: -maxItems });
      const from = Math.max(0, offset ?? 0);
      return doneRows(user, { from, ...(maxItems !== undefined && { to: from + maxItems - 1 }) });
    },
    outlines: createOutlines(connection),
    get: table.get,
    deleteHistory: (user, promptIds) => write(() => lua.deleteHistory(user, ...promptIds)),
    clearHistory: (user) => write(() => lua.clearHistory(user)),
    pruneHistory: ({ count, bytes }) => write(() => lua.pruneHistory(count, bytes)),
    highestNumber: async () => Number(String(await read(() => lua.highestNumber()))),
  };
}

/**
 * A prompt that the client was refused must never run, but Redis may still insert it: repeats until
 * Redis confirms.
 */
async function retryUntilSent(
  { redis }: LedgerConnection,
  send: () => Promise<unknown>,
): Promise<void> {
  while (redis.status !== 'end') {
    try {
      await send();
      return;
    } catch {
      await delay(RETRY_MS, undefined, { ref: false });
    }
  }
}

function entriesIn(reply: unknown): readonly (string | null)[] {
  return (reply as readonly (Buffer | null)[]).map((text) => text && text.toString());
}

/** Callers may pass objects with more properties. */
function pickLink({ promptId, jobId, graphJson, targetsJson }: LinkedJob) {
  return { promptId, jobId, targetsJson, ...(graphJson !== undefined && { graphJson }) };
}
