import { LRUCache } from 'lru-cache';
import type { PromptOutline } from './ledger.ts';
import type { Link } from './redis-link.ts';

/**
 * What is known of a user's history: as it was after so many removals, up to the end of `last`.
 * Between removals it only grows.
 */
type Known = {
  readonly removals: string;
  readonly last: string;
  readonly outlines: readonly PromptOutline[];
};

const NOTHING: Known = { removals: '', last: '-inf', outlines: [] };

/** Of each there may be as many as history keeps. */
const MOST_USERS = 20;

/** Outlines of done prompts: front ends poll them, and each poll reads what is new. */
export function createOutlines(link: Link): (user: string) => Promise<readonly PromptOutline[]> {
  const lua = link.scripts('outlines', { since: SINCE });
  const known = new LRUCache<string, Known>({ max: MOST_USERS });
  return async (user) => {
    const before = known.get(user) ?? NOTHING;
    const reply = await link.read(() => lua.since(user, before.removals, before.last));
    const [removals = '', last = '', text = ''] = (reply as readonly Buffer[]).map(String);
    const fresh = (JSON.parse(text) as PackedOutline[]).map(unpacked);
    const outlines = removals === before.removals ? [...before.outlines, ...fresh] : fresh;
    known.set(user, { removals, last, outlines });
    return outlines;
  };
}

/** In the order the script packs them; Lua has no null. */
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

// One text for each prompt, made when it ends, instead of a look at every row.
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
