import { LEADERS_LUA } from '../ledger/leaders.ts';
import { type Scripts as DefinedScripts, defineScripts } from '../lib/redis-scripts.ts';
import type { Redis, RedisConnections } from '../lib/redis.ts';

type RedisNames = Pick<RedisConnections, 'prefix' | 'channels'>;

/** How long a process that does not renew its leases counts as alive. */
export const LEASE_MS = 5000;
/** How long the entries of an ended prompt are kept for late processes. */
const ENDED_TTL_MS = 120_000;
/** The received positions are kept longer than any pause of a job. */
const RECEIVED_TTL_MS = 24 * 60 * 60_000;

/**
 * `leases`: until when each prompt is owned; `leaders`: the owner's token, which is unique. An
 * expired lease takes nothing away: only the next token does.
 */
const PRELUDE = ({ prefix, channels }: RedisNames): string => `
local P = '${prefix}'
local C = '${channels}'
local call = redis.call
local function nowMs() local t = call('TIME') return t[1] * 1000 + math.floor(t[2] / 1000) end
local function at(key) return P .. 'entries:' .. key end
${LEADERS_LUA}
local function free(key)
  clearLeader(key)
  call('ZREM', P .. 'leases', key)
  call('PEXPIRE', at(key), ${ENDED_TTL_MS})
end
local function take(key, instance)
  local token = instance .. ':' .. call('INCR', P .. 'fence')
  setLeader(key, token)
  call('ZADD', P .. 'leases', nowMs() + ${LEASE_MS}, key)
  return token
end
`;

const claim = `return take(ARGV[1], ARGV[2])`;

// Run twice, it succeeds the second time too.
const takeOver = `
local key, instance = ARGV[1], ARGV[2]
local untilMs = call('ZSCORE', P .. 'leases', key)
if not untilMs then return false end
if tonumber(untilMs) <= nowMs() then return take(key, instance) end
local token = leaderOf(key)
if token ~= '' and string.sub(token, 1, #instance) == instance then return token end
return false`;

// Run twice, the entry exists the second time; after the last entry the leader is gone as well.
const append = `
local key, token, n, text, user, isLast, picture = unpack(ARGV)
local known = #call('XRANGE', at(key), n .. '-0', n .. '-0') > 0
if not leads(key, token) then
  if known and isLast == '1' and leaderOf(key) == '' then return 0 end
  return -1
end
if not known then
  call('XADD', at(key), n .. '-0', 'e', text)
  if picture ~= '' then
    call('PUBLISH', C .. 'previews:' .. user, key .. ' ' .. n .. ' ' .. picture)
  end
  call('PUBLISH', C .. 'events', 'e ' .. key .. ' ' .. n .. ' ' .. text)
end
if isLast == '1' then free(key) end
return call('PUBSUB', 'NUMSUB', C .. 'previews:' .. user)[2]`;

const renew = `
local lost, untilMs = {}, nowMs() + ${LEASE_MS}
for i = 1, #ARGV, 2 do
  if leads(ARGV[i], ARGV[i + 1]) then call('ZADD', P .. 'leases', untilMs, ARGV[i])
  else lost[#lost + 1] = ARGV[i] end
end
return lost`;

const giveBack = `
for i = 1, #ARGV, 2 do
  if leads(ARGV[i], ARGV[i + 1]) then call('ZADD', P .. 'leases', 0, ARGV[i]) end
end
call('PUBLISH', C .. 'events', 'v')`;

const drop = `if leads(ARGV[1], ARGV[2]) then free(ARGV[1]) end`;

const vacant = `return call('ZRANGE', P .. 'leases', '-inf', nowMs(), 'BYSCORE')`;

const register = `
for _, key in ipairs(ARGV) do call('ZADD', P .. 'leases', 'NX', 0, key) end`;

const received = `
local key, upTo, instance, group = unpack(ARGV)
local mark = P .. 'received:' .. key
if group ~= 'client' then mark = mark .. ':' .. group end
if tonumber(upTo) <= tonumber(call('GET', mark) or 0) then return end
call('SET', mark, upTo, 'PX', ${RECEIVED_TTL_MS})
call('PUBLISH', C .. 'events', table.concat({'r', key, upTo, instance, group}, ' '))`;

const SCRIPTS = {
  claim,
  takeOver,
  append,
  renew,
  giveBack,
  drop,
  vacant,
  register,
  received,
} as const;

/** Atomic operations. The scripts build key names, so they need one Redis, not a Redis cluster. */
export type Scripts = DefinedScripts<keyof typeof SCRIPTS>;

export function defineReplicationScripts(redis: Redis, names: RedisNames): Scripts {
  return defineScripts(redis, SCRIPTS, { namespace: 'replication', prelude: PRELUDE(names) });
}
