import { type Scripts, defineScripts } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import { arrange, cancel, enter, queuePrelude, waitingOf } from './queue-scripts.ts';
import type { QueueKeys } from './redis-keys.ts';

/**
 * A worker claims a job: later writes of an earlier worker have a stale fence. ARGV id, now, most
 * attempts (empty: only to end it), worker.
 */
const claim = `
local run = runOf(ARGV[1])
local finish = call('HGET', run, 'end')
if finish then return {'ended', finish} end
local fence = call('HINCRBY', run, 'fence', 1)
dropState(run)
call('HSET', run, 'told', 0)
if ARGV[3] == '' then return {'run', fence} end
if call('HEXISTS', run, 'cancel') == 1 then return {'cancel', fence} end
local attempts = tonumber(call('HGET', run, 'attempts') or 0)
if attempts >= tonumber(ARGV[3]) then return {'lost', fence, attempts} end
call('HSET', run, 'status', 'running', 'startedAtMs', ARGV[2], 'worker', ARGV[4])
return {'run', fence, attempts}`;

/**
 * The first node of a job begins: from now on a crash of its worker counts. It is counted once for
 * each fence, however often the command is sent. ARGV id, fence.
 */
const begin = `
local id, fence = unpack(ARGV)
if isStale(id, fence) then return 'stale' end
if call('HSETNX', runOf(id), 'begun:' .. fence, 1) == 1 then
  call('HINCRBY', runOf(id), 'attempts', 1)
end
return 'ok'`;

/** A worker that was considered dead is alive: its run does not count. ARGV id, its fence. */
const stillAlive = `
local id, fence = unpack(ARGV)
if call('HEXISTS', runOf(id), 'end') == 0 then undoBegin(id, fence) end`;

/**
 * The events of a running job, once and in order. ARGV id, fence, lifetime of a preview, number of
 * fields, fields and values, then (kind, n, text) each; a preview numbered 1 is stored for later
 * subscribers.
 */
const append = `
local id, fence, run = ARGV[1], ARGV[2], runOf(ARGV[1])
if isStale(id, fence) then return 'stale' end
local lastNumber = tonumber(call('HGET', run, 'told') or 0)
local fieldsEnd = 4 + 2 * tonumber(ARGV[4])
for at = 5, fieldsEnd, 2 do call('HSET', run, ARGV[at], ARGV[at + 1]) end
for item = fieldsEnd + 1, #ARGV, 3 do
  local kind, n, text = ARGV[item], tonumber(ARGV[item + 1]), ARGV[item + 2]
  if kind == 'p' then
    if n == 1 then call('SET', run .. ':preview', text, 'PX', ARGV[3]) end
    publish(id .. ':live', 'p' .. text)
  elseif n > lastNumber then
    emit(id, fence, n, text)
    lastNumber = n
  end
end
call('HSET', run, 'told', lastNumber)
return call('HEXISTS', run, 'cancel') == 1 and 'cancel' or 'ok'`;

/** The end of a job, decided once. ARGV id, fence, status, end, status event. */
const end = `
local id, fence, status, patch, event = unpack(ARGV)
local run = runOf(id)
if call('HGET', run, 'fence') ~= fence then return 'stale' end
if call('HEXISTS', run, 'end') == 1 then return 'ok' end
if status ~= 'canceled' and call('HEXISTS', run, 'cancel') == 1 then return 'cancel' end
local user, place, before = unpack(call('HMGET', run, 'user', 'place', 'status'))
call('HSET', run, 'end', patch, 'status', status)
emitNext(id, fence, event)
if not place then return 'ok' end
call('ZREM', jobsOf(user), place)
if call('EXISTS', jobsOf(user)) == 0 then call('ZREM', TURNS, user)
elseif before == 'running' then waitsAnew(user) end
arrange(user)
return 'ok'`;

/**
 * A worker returns its job; when the process closes, the run does not count. Its user is next again,
 * once BullMQ has the job back. ARGV id, fence, status event, attempts returned.
 */
const requeue = `
local id, fence, event, returned = unpack(ARGV)
local run = runOf(id)
if isStale(id, fence) then return 'stale' end
emitNext(id, fence, event)
call('HINCRBY', run, 'fence', 1)
if returned == '1' then undoBegin(id, fence) end
dropState(run)
call('HSET', run, 'status', 'queued')
local user = call('HGET', run, 'user')
if user then call('ZADD', TURNS, 0, user) end
return 'ok'`;

/** A counter above the floor that was never reserved before. ARGV counter, floor, lifetime. */
const reserveCounter = `
local last = tonumber(call('GET', ARGV[1]) or 0)
local next = math.max(last, tonumber(ARGV[2])) + 1
call('SET', ARGV[1], next, 'PX', ARGV[3])
return next`;

const SCRIPTS = {
  enter,
  arrange,
  waitingOf,
  claim,
  begin,
  stillAlive,
  append,
  end,
  requeue,
  cancel,
  reserveCounter,
};

export type QueueScripts = Scripts<keyof typeof SCRIPTS>;

/** The scripts of the distributed queue. */
export function defineQueueScripts(redis: Redis, keys: QueueKeys): QueueScripts {
  return defineScripts(redis, SCRIPTS, {
    namespace: 'queue',
    key: keys.prefix,
    prelude: queuePrelude(keys),
  });
}
