import { PROMPT_LEASES, leasesLua } from '../ledger/leases.ts';
import { type Scripts as DefinedScripts, defineScripts } from '../redis/redis-scripts.ts';
import type { Redis } from '../redis/redis.ts';
import type { RedisPartition } from '../redis/redis-partitions.ts';

/** How long a process that does not renew its leases counts as alive. */
export const LEASE_MS = 5000;
/** How long entries and received positions of an ended prompt are kept for late processes. */
const ENDED_TTL_MS = 120_000;
/** Before its end the positions are kept longer than any pause of a job. */
const RECEIVED_TTL_MS = 24 * 60 * 60_000;

/** The same for all partitions of a cluster. */
const PRELUDE = ({ prefix, channels, publish }: RedisPartition) => `
local P = KEYS[1]
local C = P .. '${channels.slice(prefix.length)}'
local PUBLISH, NUMSUB = '${publish}', '${publish === 'PUBLISH' ? 'NUMSUB' : 'SHARDNUMSUB'}'
local call = redis.call
local function at(key) return P .. 'entries:' .. key end
${leasesLua(PROMPT_LEASES)}
local function mark(key, group) return P .. 'received:' .. key .. (group == 'client' and '' or ':' .. group) end
local function free(key)
  release(key)
  for _, kept in ipairs({at(key), mark(key, 'client'), mark(key, 'hosted')}) do
    call('PEXPIRE', kept, ${ENDED_TTL_MS})
  end
end
local function tell(user, message) call(PUBLISH, C .. 'prompts:' .. user, message) end
-- A set of what happened to the prompts of a user a moment ago.
local function remember(set, member)
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
  // Run twice, the entry exists the second time; after the last entry the leader is gone as well.
  append: `
local key, token, n, text, user, isLast, picture = unpack(ARGV)
local known = #call('XRANGE', at(key), n .. '-0', n .. '-0') > 0
if not holds(key, token) then
  if known and isLast == '1' and holderOf(key) == '' then return 0 end
  return -1
end
if not known then
  call('XADD', at(key), n .. '-0', 'e', text)
  if picture ~= '' then
    call(PUBLISH, C .. 'previews:' .. user, key .. ' ' .. n .. ' ' .. picture)
  end
  tell(user, 'e ' .. key .. ' ' .. n .. ' ' .. text)
end
if isLast == '1' then
  free(key)
  remember(P .. 'ended:' .. user, key)
end
return call('PUBSUB', NUMSUB, C .. 'previews:' .. user)[2]`,
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
  drop: `if holds(ARGV[1], ARGV[2]) then free(ARGV[1]) end`,
  vacant: `return call('ZRANGE', LEASES, '-inf', nowMs(), 'BYSCORE')`,
  // Keys and users, alternating. One that has ended since its record was read needs no leader any more.
  register: `
for i = 1, #ARGV, 2 do
  local hasEnded = call('ZSCORE', P .. 'ended:' .. ARGV[i + 1], ARGV[i])
  if not hasEnded then call('ZADD', LEASES, 'NX', 0, ARGV[i]) end
end`,
  received: `
local key, upTo, instance, group, user = unpack(ARGV)
if tonumber(upTo) <= tonumber(call('GET', mark(key, group)) or 0) then return end
local isLive = call('PTTL', at(key)) == -1
call('SET', mark(key, group), upTo, 'PX', isLive and ${RECEIVED_TTL_MS} or ${ENDED_TTL_MS})
tell(user, table.concat({'r', key, upTo, instance, group}, ' '))`,
  cancel: `tell(ARGV[1], 'c ' .. ARGV[2] .. ' ' .. ARGV[3])`,
  fetched: `
local user, id, word = unpack(ARGV)
remember(P .. 'fetched:' .. user, id)
tell(user, 'f ' .. word)`,
  /** The prompts of a user that ended, and those whose results were fetched, a moment ago. */
  recent: `
local since = nowMs() - ${ENDED_TTL_MS}
return {
  call('ZRANGE', P .. 'ended:' .. ARGV[1], since, '+inf', 'BYSCORE'),
  call('ZRANGE', P .. 'fetched:' .. ARGV[1], since, '+inf', 'BYSCORE')
}`,
  withEntries: `
local found = {}
for _, key in ipairs(ARGV) do
  if call('EXISTS', at(key)) == 1 then found[#found + 1] = key end
end
return found`,
};

/** Atomic operations on the prompts of one partition. */
export type Scripts = DefinedScripts<keyof typeof SCRIPTS>;

export function defineReplicationScripts(redis: Redis, partition: RedisPartition): Scripts {
  const options = { namespace: 'replication', key: partition.prefix, prelude: PRELUDE(partition) };
  return defineScripts(redis, SCRIPTS, options);
}
