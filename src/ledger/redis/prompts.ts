import { PROMPT_COLUMNS } from '../columns.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { PromptRow, PromptStore, PromptOutline } from '../ledger.ts';
import { type WriteTokens, NOT_LEADER } from './write-tokens.ts';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { PROMPT_SCRIPTS } from './prompts-scripts.ts';
import { createTable, newToken } from './table.ts';
import { LRUCache } from 'lru-cache';

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
  async function writeAsLeader(
    act: 'update' | 'begin' | 'remove' | 'finish',
    key: string,
    ...args: ScriptArgument[]
  ): Promise<void> {
    const token = writeTokens().token(key);
    const reply = await ask(() => lua[act](key, token, ...args));
    if (reply === NOT_LEADER) throw writeTokens().refused(key, token);
  }
  const update = (
    key: string,
    only: 'unfinished' | 'unlinked' | 'live',
    change: Partial<PromptRow>,
  ): Promise<void> => writeAsLeader('update', key, only, ...table.fields(change));
  async function insert(row: PromptRow): Promise<void> {
    const mark = newToken();
    const leader = writeTokens().token(row.key);
    const send = () => lua.insert(mark, row.key, leader, ...table.fields(row));
    const reply = await ask(send).catch((error: unknown) => {
      void retryUntilSent(connection, () => lua.revoke(mark, row.key));
      throw error;
    });
    if (reply === NOT_LEADER) throw writeTokens().refused(row.key, leader);
  }
  return {
    insert,
    async insertBeforeLater(row) {
      await insert(row);
      return { stored: Promise.resolve() };
    },
    setState: (key, state) => update(key, 'unfinished', { state }),
    setPlan: (key, { intentJson, targetsJson }) =>
      update(key, 'unlinked', { intentJson, targetsJson }),
    unlinkJob: (key, plan) => update(key, 'live', { state: 'outbox', jobId: null, ...plan }),
    begin: (key, atMs) => writeAsLeader('begin', key, atMs),
    askCancel: (key, atMs) =>
      write(() => lua.change(key, ...table.fields({ cancelAskedAtMs: atMs }))),
    linkJob: (key, patch) => update(key, 'unfinished', { ...patch, state: 'live' }),
    remove: (key) => writeAsLeader('remove', key),
    finish: (key, { shortened, ...outcome }) => {
      const row = { ...outcome, ...shortened, state: 'done' as const };
      return writeAsLeader('finish', key, ...table.fields(row));
    },
    entries: (keys) =>
      read(async () => (keys.length === 0 ? [] : entriesIn(await lua.entries(...keys)))),
    async live(user) {
      const rows = await table.listed(`prompts:live${user === undefined ? '' : `:${user}`}`);
      return rows.filter(({ state }) => state !== 'done');
    },
    liveKeys: (user) => read(() => redis.zrange(`${prefix}prompts:live:${user}`, 0, '-1')),
    find: (user, promptId) => table.last(`prompts:id:${joinKey(user, promptId)}`),
    findByJob: (user, jobId) => table.first(`prompts:job:${joinKey(user, jobId)}`),
    hasJob: async (jobId) => (await read(() => lua.hasJob(jobId))) === 1,
    async history(user, { maxItems, offset = -1 }) {
      const done = `prompts:done:${user}`;
      if (maxItems === undefined) return table.listed(done, Math.max(0, offset));
      if (maxItems <= 0) return [];
      // v1 returns the newest when only a maximum is given; a negative offset counts as none.
      return offset < 0
        ? table.listed(done, -maxItems)
        : table.listed(done, offset, offset + maxItems - 1);
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

/**
 * The cached outlines of a user's history: after `removals` removals, up to the score `last`.
 * Between removals a history only grows.
 */
type CachedOutlines = {
  readonly removals: string;
  readonly last: string;
  readonly outlines: readonly PromptOutline[];
};

const EMPTY: CachedOutlines = { removals: '', last: '-inf', outlines: [] };

/** Each may have as many outlines as history has entries. */
const MAX_CACHED_USERS = 20;

/** Outlines of done prompts. Front ends poll them; each poll reads only the new ones. */
function createOutlines(
  connection: LedgerConnection,
): (user: string) => Promise<readonly PromptOutline[]> {
  const lua = connection.scripts('outlines', { since: SINCE });
  const cached = new LRUCache<string, CachedOutlines>({ max: MAX_CACHED_USERS });
  return async (user) => {
    const before = cached.get(user) ?? EMPTY;
    const reply = await connection.read(() => lua.since(user, before.removals, before.last));
    const [removals = '', last = '', text = ''] = (reply as readonly Buffer[]).map(String);
    const fresh = (JSON.parse(text) as (string | number | false)[][]).map(unpacked);
    const outlines = removals === before.removals ? [...before.outlines, ...fresh] : fresh;
    cached.set(user, { removals, last, outlines });
    return outlines;
  };
}

/** From an array of the script, which has false for null. */
function unpacked(packed: readonly (string | number | false)[]): PromptOutline {
  const [key, promptId, word, created, started, ended, storedBytes = 0] = packed;
  return {
    key: String(key),
    promptId: String(promptId),
    statusWord: word ? String(word) : null,
    createdAtMs: Number(created),
    startedAtMs: started ? Number(started) : null,
    endedAtMs: ended ? Number(ended) : null,
    storedBytes: Number(storedBytes),
  };
}

// One text for each prompt, stored when it ends, instead of a read of every row.
const SINCE = `
local user, removals, last = unpack(ARGV)
local done, out = P .. 'prompts:done:' .. user, {}
local counted = call('HGET', P .. 'prompts:removals', user) or '0'
if counted ~= removals then last = '-inf' end
local keys = call('ZRANGEBYSCORE', done, '(' .. last, '+inf')
for i = 1, #keys, 1000 do
  local some = {unpack(keys, i, math.min(i + 999, #keys))}
  for _, outline in ipairs(call('HMGET', P .. 'prompts:outlines:' .. user, unpack(some))) do
    out[#out + 1] = outline
  end
end
local newest = call('ZRANGE', done, -1, -1, 'WITHSCORES')[2] or '-inf'
return {counted, newest, '[' .. table.concat(out, ',') .. ']'}`;
