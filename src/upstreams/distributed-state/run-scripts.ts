import { type Scripts, defineScripts } from '../../lib/redis-scripts.ts';
import type { Redis } from '../../lib/redis.ts';
import { QUEUE_PRELUDE, QUEUE_SCRIPTS } from './queue-scripts.ts';

/**
 * A worker claims a job: later writes of an earlier worker have a stale fence. KEYS queue. ARGV id,
 * now, most attempts (empty: only to end it), channel.
 */
const claim = `${QUEUE_PRELUDE}
local finish = redis.call('HGET', KEYS[1], 'end')
if finish then return {'ended', finish} end
local fence = redis.call('HINCRBY', KEYS[1], 'fence', 1)
redis.call('HDEL', KEYS[1], 'progress', 'outputs', 'ui', 'cached', 'startedAtMs')
redis.call('HSET', KEYS[1], 'told', 0)
removeWaiting(ARGV[1], userOf(run))
redis.call('PUBLISH', ARGV[4], 'moved')
if ARGV[3] == '' then return {'run', fence} end
if redis.call('HEXISTS', KEYS[1], 'cancel') == 1 then return {'cancel', fence} end
local attempts = tonumber(redis.call('HGET', KEYS[1], 'attempts') or 0)
if attempts >= tonumber(ARGV[3]) then return {'lost', fence, attempts} end
redis.call('HSET', KEYS[1], 'status', 'running', 'startedAtMs', ARGV[2])
return {'run', fence, attempts}`;

/**
 * The first node of a job begins: from now on a crash of its worker counts. It is counted once for
 * each fence, however often the command is sent. KEYS run. ARGV fence.
 */
const begin = `
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 'stale' end
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'stale' end
if redis.call('HSETNX', KEYS[1], 'begun:' .. ARGV[1], 1) == 1 then
  redis.call('HINCRBY', KEYS[1], 'attempts', 1)
end
return 'ok'`;

const UNDO_BEGIN = `
if redis.call('HDEL', KEYS[1], 'begun:' .. ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[1], 'attempts', -1)
end`;

/** A worker that was considered dead is alive: its run does not count. KEYS run. ARGV its fence. */
const stillAlive = `
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'ok' end
${UNDO_BEGIN}
return 'ok'`;

/**
 * The events of a running job, once and in order. KEYS run, events, preview. ARGV fence, channel,
 * most entries, lifetime of a preview, number of fields, fields and values, then (kind, n, text)
 * each; a preview numbered 1 is stored for later subscribers.
 */
const append = `
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 'stale' end
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'stale' end
local lastNumber = tonumber(redis.call('HGET', KEYS[1], 'told') or 0)
local at = 6
for _ = 1, tonumber(ARGV[5]) do
  redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1])
  at = at + 2
end
for item = at, #ARGV, 3 do
  local n = tonumber(ARGV[item + 1])
  if ARGV[item] == 'p' then
    if n == 1 then redis.call('SET', KEYS[3], ARGV[item + 2], 'PX', ARGV[4]) end
    redis.call('PUBLISH', ARGV[2], 'p' .. ARGV[item + 2])
  elseif n > lastNumber then
    local id = ARGV[1] .. '-' .. n
    redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[3], id, 'e', ARGV[item + 2])
    redis.call('PUBLISH', ARGV[2], 'e' .. id .. '\\n' .. ARGV[item + 2])
    lastNumber = n
  end
end
redis.call('HSET', KEYS[1], 'told', lastNumber)
return redis.call('HEXISTS', KEYS[1], 'cancel') == 1 and 'cancel' or 'ok'`;

/**
 * The end of a job, decided once. KEYS queue, events. ARGV fence, channel, id, status, end, status
 * event, channel of the queue.
 */
const end = `${QUEUE_PRELUDE}
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 'stale' end
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'ok' end
if ARGV[4] ~= 'canceled' and redis.call('HEXISTS', KEYS[1], 'cancel') == 1 then
  return 'cancel'
end
redis.call('HSET', KEYS[1], 'end', ARGV[5], 'status', ARGV[4])
local id = ARGV[1] .. '-' .. (tonumber(redis.call('HGET', KEYS[1], 'told') or 0) + 1)
redis.call('XADD', KEYS[8], id, 'e', ARGV[6])
redis.call('PUBLISH', ARGV[2], 'e' .. id .. '\\n' .. ARGV[6])
local user = userOf(run)
removeWaiting(ARGV[3], user)
releaseHeld(ARGV[3], user)
redis.call('PUBLISH', ARGV[7], 'moved')
return 'ok'`;

/**
 * A worker returns its job to the queue; when the process closes, the run does not count. Its user
 * is next again. KEYS queue, events. ARGV fence, channel, id, score, status event, channel of the
 * queue, attempts returned.
 */
const requeue = `${QUEUE_PRELUDE}
if redis.call('HGET', KEYS[1], 'fence') ~= ARGV[1] then return 'stale' end
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'stale' end
local id = ARGV[1] .. '-' .. (tonumber(redis.call('HGET', KEYS[1], 'told') or 0) + 1)
redis.call('XADD', KEYS[8], id, 'e', ARGV[5])
redis.call('PUBLISH', ARGV[2], 'e' .. id .. '\\n' .. ARGV[5])
redis.call('HINCRBY', KEYS[1], 'fence', 1)
if ARGV[7] == '1' then
  ${UNDO_BEGIN}
end
redis.call('HDEL', KEYS[1], 'progress', 'outputs', 'ui', 'cached', 'startedAtMs')
redis.call('HSET', KEYS[1], 'status', 'queued')
local user = userOf(run)
releaseHeld(ARGV[3], user)
addWaiting(ARGV[3], user, ARGV[4])
redis.call('ZADD', turns, 0, user)
redis.call('PUBLISH', ARGV[6], 'moved')
return 'ok'`;

/** A client asks to cancel a job. KEYS run. ARGV channel, id. */
const askCancel = `
if redis.call('HEXISTS', KEYS[1], 'end') == 1 then return 'ended' end
redis.call('HSET', KEYS[1], 'cancel', 1)
redis.call('PUBLISH', ARGV[1], 'cancel ' .. ARGV[2])
return 'ok'`;

/** A counter above the floor that was never reserved before. KEYS counter. ARGV floor, lifetime. */
const reserveCounter = `
local last = tonumber(redis.call('GET', KEYS[1]) or 0)
local next = math.max(last, tonumber(ARGV[1])) + 1
redis.call('SET', KEYS[1], next, 'PX', ARGV[2])
return next`;

/** Releases a lock that the holder still has. KEYS lock. ARGV holder. */
const unlock = `
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`;

const SCRIPTS = {
  ...QUEUE_SCRIPTS,
  claim,
  begin,
  stillAlive,
  append,
  end,
  requeue,
  askCancel,
  reserveCounter,
  unlock,
};

export type QueueScripts = Scripts<keyof typeof SCRIPTS>;

/** The scripts of the distributed queue. Each call begins with the number of its KEYS. */
export function defineQueueScripts(redis: Redis): QueueScripts {
  return defineScripts(redis, SCRIPTS, { namespace: 'queue', arguments: 'keys' });
}
