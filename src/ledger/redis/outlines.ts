import { LRUCache } from 'lru-cache';
import type { PromptOutline } from '../ledger.ts';
import type { LedgerConnection } from './connection.ts';

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
export function createOutlines(
  connection: LedgerConnection,
): (user: string) => Promise<readonly PromptOutline[]> {
  const lua = connection.scripts('outlines', { since: SINCE });
  const cached = new LRUCache<string, CachedOutlines>({ max: MAX_CACHED_USERS });
  return async (user) => {
    const before = cached.get(user) ?? EMPTY;
    const reply = await connection.read(() => lua.since(user, before.removals, before.last));
    const [removals = '', last = '', text = ''] = (reply as readonly Buffer[]).map(String);
    const fresh = (JSON.parse(text) as PackedOutline[]).map(unpacked);
    const outlines = removals === before.removals ? [...before.outlines, ...fresh] : fresh;
    cached.set(user, { removals, last, outlines });
    return outlines;
  };
}

/** In the order in which the script packs them; Lua has no null. */
type PackedOutline = readonly [
  key: string,
  promptId: string,
  word: string | false,
  created: string,
  started: string | false,
  ended: string | false,
  storedBytes?: number,
];

function unpacked([key, promptId, ...rest]: PackedOutline): PromptOutline {
  const [word, created, started, ended, storedBytes = 0] = rest;
  return {
    key,
    promptId,
    statusWord: word || null,
    createdAtMs: Number(created),
    startedAtMs: started ? Number(started) : null,
    endedAtMs: ended ? Number(ended) : null,
    storedBytes,
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
