import { OUTLINE_NAMES } from '../columns.ts';
import { setTimeout as delay } from 'node:timers/promises';
import type { PromptStore, PromptOutline } from '../ledger.ts';
import { type WriteTokens, NOT_LEADER } from './write-tokens.ts';
import type { ScriptArgument, Scripts } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { PROMPT_READS, PROMPT_SCRIPTS } from './prompts-scripts.ts';
import { Table, newToken } from './table.ts';
import { createOutlineCache } from '../outline-cache.ts';
import { retry } from '../../lib/retry.ts';

/** Delay between attempts to revoke an insertion. */
const RETRY_MS = { first: 1000, last: 1000 } as const;

/** The prompts of v1, unfinished and done. */
export function promptStore(
  connection: LedgerConnection,
  writeTokens: () => WriteTokens,
): PromptStore {
  const table = new Table(connection, 'prompts');
  const lua = connection.scripts('prompts', PROMPT_SCRIPTS);
  const parts = { connection, table, lua };
  return { ...writes(parts, writeTokens), ...lookups(parts), ...historyStore(parts) };
}

type Parts = {
  readonly connection: LedgerConnection;
  readonly table: Table<'prompts'>;
  readonly lua: Scripts<keyof typeof PROMPT_SCRIPTS>;
};

/** The functions that change single prompts. */
function writes({ connection, table, lua }: Parts, writeTokens: () => WriteTokens) {
  const writeAsLeader = async (
    act: 'update' | 'begin' | 'remove' | 'finish',
    key: string,
    ...args: ScriptArgument[]
  ): Promise<void> => {
    const token = writeTokens().token(key);
    const reply = await lua[act]<unknown>(key, token, ...args);
    if (reply === NOT_LEADER) throw writeTokens().refused(key, token);
  };
  return {
    async insert(row) {
      const token = newToken();
      const leader = writeTokens().token(row.key);
      const inserted = lua.insert<unknown>(token, row.key, leader, ...table.fields(row));
      const reply = await inserted.catch((error: unknown) => {
        void retryUntilSent(connection.redis, () => lua.revoke(token, row.key));
        throw error;
      });
      if (reply === NOT_LEADER) throw writeTokens().refused(row.key, leader);
    },
    update: (key, only, change) => writeAsLeader('update', key, only, ...table.fields(change)),
    begin: (key, atMs) => writeAsLeader('begin', key, atMs),
    askCancel: (key, atMs) => lua.change(key, ...table.fields({ cancelAskedAtMs: atMs })),
    remove: (key) => writeAsLeader('remove', key),
    finish: (key, { shortened, ...outcome }) => {
      const row = { ...outcome, ...shortened, state: 'done' as const };
      return writeAsLeader('finish', key, ...table.fields(row));
    },
  } satisfies Partial<PromptStore>;
}

/** The functions that find prompts. */
function lookups({ connection, table }: Parts) {
  const ask = connection.scripts('prompt-reads', PROMPT_READS, 'read');
  const { prefix, read, redis } = connection;
  return {
    async entries(keys) {
      if (keys.length === 0) return [];
      const found = await ask.entries<Texts>(...keys);
      return found.map((text) => text && text.toString());
    },
    async live(user) {
      const rows = await table.listed(user === undefined ? 'prompts:live' : `prompts:live:${user}`);
      return rows.filter(({ state }) => state !== 'done');
    },
    liveKeys: (user) => read(() => redis.zrange(`${prefix}prompts:live:${user}`, 0, '-1')),
    find: (user, promptId) => table.last(`prompts:id:${joinKey(user, promptId)}`),
    findByJob: async (user, jobId) =>
      (await table.listed(`prompts:job:${jobId}`)).find((row) => row.user === user),
    hasJob: async (jobId) =>
      (await read(() => redis.exists(`${prefix}prompts:job:${jobId}`))) === 1,
    get: (key) => table.get(key),
    highestNumber: async () => Number((await ask.highestNumber<Buffer>()).toString()),
  } satisfies Partial<PromptStore>;
}

/** The functions for the history of a user. */
function historyStore({ connection, table, lua }: Parts) {
  return {
    outlines: createOutlines(connection, table).of,
    deleteHistory: (user, promptIds) => lua.deleteHistory(user, ...promptIds),
    clearHistory: (user) => lua.clearHistory(user),
    pruneHistory: ({ count, bytes }) => lua.pruneHistory(count, bytes),
  } satisfies Partial<PromptStore>;
}

type Texts = readonly (Buffer | null)[];

/**
 * Sends until Redis confirms. Used to revoke an insertion whose client got an error: the prompt must never run, but
 * Redis may still insert it.
 */
async function retryUntilSent(redis: Redis, send: () => Promise<void>): Promise<void> {
  await retry(async () => (redis.status === 'end' ? undefined : send()), {
    clock: { sleep: (ms) => delay(ms, undefined, { ref: false }) },
    waitMs: RETRY_MS,
    onError() {},
  });
}

/** `removals`: the number of removals so far; while it is the same, a history only grows. `last`: the highest score read. */
type HistoryMark = { readonly removals: string; readonly last: string };

function createOutlines(connection: LedgerConnection, table: Table<'prompts'>) {
  const { since } = connection.scripts('outlines', { since: SINCE }, 'read');
  /** Decodes a stored outline: its members in the order of `OUTLINE_NAMES`, false for null, then its bytes. */
  const outlineOf = (packed: readonly (string | number | false)[]) => {
    const cells = packed.map((cell) => (cell === false ? null : String(cell)));
    const storedBytes = Number(cells[OUTLINE_NAMES.length] ?? 0);
    return { ...table.decode(cells, OUTLINE_NAMES), storedBytes } as PromptOutline;
  };
  return createOutlineCache<HistoryMark>(async (user, mark = { removals: '', last: '-inf' }) => {
    const reply = await since<Buffer[]>(user, mark.removals, mark.last);
    const [removals = '', last = '', text = ''] = reply.map(String);
    const outlines = (JSON.parse(text) as (string | number | false)[][]).map(outlineOf);
    return { mark: { removals, last }, isWhole: removals !== mark.removals, outlines };
  });
}

// Reads one text for each prompt, which was stored when the prompt ended, instead of every row.
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
