import { PROMPT_LEASES, leasesLua } from '../ledger/leases.ts';
import { type Scripts as DefinedScripts, defineScripts } from '../redis/redis-scripts.ts';
import type { Redis, RedisConnections } from '../redis/redis.ts';

/** How long a lease is held without a renewal. */
export const LEASE_MS = 5000;
/** How long entries and received positions of an ended prompt are kept for processes that read them late. */
const ENDED_TTL_MS = 120_000;
/** How long received positions of an unfinished prompt are kept: longer than a job is without events. */
const RECEIVED_TTL_MS = 24 * 60 * 60_000;

const prelude = (channels: string): string => `
local P, C = KEYS[1], '${channels}'
local call = redis.call
local function entriesOf(key) return P .. 'entries:' .. key end
${leasesLua(PROMPT_LEASES)}
local function receivedOf(key, group) return P .. 'received:' .. key .. (group == 'client' and '' or ':' .. group) end
local function endPrompt(key)
  release(key)
  for _, name in ipairs({entriesOf(key), receivedOf(key, 'client'), receivedOf(key, 'hosted')}) do
    call('PEXPIRE', name, ${ENDED_TTL_MS})
  end
end
local function publishTo(user, message) call('PUBLISH', C .. 'prompts:' .. user, message) end
-- Adds to a set of recent members, which are kept for ${ENDED_TTL_MS} ms.
local function addRecent(set, member)
  call('ZREMRANGEBYSCORE', set, '-inf', nowMs() - ${ENDED_TTL_MS})
  call('ZADD', set, nowMs(), member)
  call('PEXPIRE', set, ${ENDED_TTL_MS})
end
`;

const SCRIPTS = {
  claim: `return take(ARGV[1], ARGV[2], ${LEASE_MS})`,
  takeOver: `
if not call('ZSCORE', LEASES, ARGV[1]) then return false end
return takeIfFree(ARGV[1], ARGV[2], ${LEASE_MS})`,
  // May run twice. The second time the entry exists; if it is the last entry, the prompt has no leader either.
  append: `
local key, token, n, text, user, isLast, picture = unpack(ARGV)
local known = #call('XRANGE', entriesOf(key), n .. '-0', n .. '-0') > 0
if not holds(key, token) then
  if known and isLast == '1' and holderOf(key) == '' then return 0 end
  return -1
end
if not known then
  call('XADD', entriesOf(key), n .. '-0', 'e', text)
  if picture ~= '' then
    call('PUBLISH', C .. 'previews:' .. user, key .. ' ' .. n .. ' ' .. picture)
  end
  publishTo(user, 'e ' .. key .. ' ' .. n .. ' ' .. text)
end
if isLast == '1' then
  endPrompt(key)
  addRecent(P .. 'ended:' .. user, key)
end
return call('PUBSUB', 'NUMSUB', C .. 'previews:' .. user)[2]`,
  renew: `
local lost = {}
for i = 1, #ARGV, 2 do
  if holds(ARGV[i], ARGV[i + 1]) then extend(ARGV[i], ${LEASE_MS})
  else lost[#lost + 1] = ARGV[i] end
end
return lost`,
  giveBack: `
for i = 1, #ARGV, 2 do
  if holds(ARGV[i], ARGV[i + 1]) then call('ZADD', LEASES, 0, ARGV[i]) end
end`,
  drop: `if holds(ARGV[1], ARGV[2]) then endPrompt(ARGV[1]) end`,
  vacant: `return call('ZRANGE', LEASES, '-inf', nowMs(), 'BYSCORE')`,
  // ARGV: key and user of each prompt. A prompt that has ended since its record was read needs no leader.
  register: `
for i = 1, #ARGV, 2 do
  local hasEnded = call('ZSCORE', P .. 'ended:' .. ARGV[i + 1], ARGV[i])
  if not hasEnded then call('ZADD', LEASES, 'NX', 0, ARGV[i]) end
end`,
  received: `
local key, upTo, instance, group, user = unpack(ARGV)
if tonumber(upTo) <= tonumber(call('GET', receivedOf(key, group)) or 0) then return end
local isLive = call('PTTL', entriesOf(key)) == -1
call('SET', receivedOf(key, group), upTo, 'PX', isLive and ${RECEIVED_TTL_MS} or ${ENDED_TTL_MS})
publishTo(user, table.concat({'r', key, upTo, instance, group}, ' '))`,
  cancel: `publishTo(ARGV[1], 'c ' .. ARGV[2] .. ' ' .. ARGV[3])`,
  fetched: `
local user, id, encodedId = unpack(ARGV)
addRecent(P .. 'fetched:' .. user, id)
publishTo(user, 'f ' .. encodedId)`,
  // The keys of a user's prompts that ended, and the ids of those whose results were fetched, in the last two minutes.
  recent: `
local since = nowMs() - ${ENDED_TTL_MS}
return {
  call('ZRANGE', P .. 'ended:' .. ARGV[1], since, '+inf', 'BYSCORE'),
  call('ZRANGE', P .. 'fetched:' .. ARGV[1], since, '+inf', 'BYSCORE')
}`,
  withEntries: `
local found = {}
for _, key in ipairs(ARGV) do
  if call('EXISTS', entriesOf(key)) == 1 then found[#found + 1] = key end
end
return found`,
};

/** Atomic operations on prompts. */
export type Scripts = DefinedScripts<keyof typeof SCRIPTS>;

export function defineReplicationScripts(
  redis: Redis,
  { prefix, channels }: RedisConnections,
): Scripts {
  const options = { namespace: 'replication', prefix, prelude: prelude(channels) };
  return defineScripts(redis, SCRIPTS, options);
}
