import { type Scripts, defineScripts } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import type { QueueKeys } from './redis-keys.ts';

/** The number of jobs of each user that get their exact priority. Later jobs get it when they move up. */
const PLACED_JOBS = 128;
/** BullMQ stores a priority in the high half of a score. The low half orders jobs of equal priority. */
const PRIORITY_UNIT = 2 ** 32;
const HIGHEST_PRIORITY = 2 ** 21 - 1;
/** The digits before the colon and the id in a member of `jobsOf`. */
const ARRIVAL_DIGITS = 16;
/** The most entries of a job's stream: many more than a subscriber can be behind. */
const MAX_ENTRIES = 10_000;

/** The Lua functions of all scripts of the queue. */
function prelude({ prefix, ofBull, waiting, runChannels }: QueueKeys): string {
  return `
local call = redis.call
local P, BULL, WAITING, CHANNELS = '${prefix}', '${ofBull}', '${waiting}', '${runChannels}'
${ORDER_FUNCTIONS}${RUN_FUNCTIONS}`;
}

/**
 * The order of waiting jobs. `arrange` sets the priority of each waiting job of a user in BullMQ: one more than the
 * number of the user's jobs that run or wait before it.
 */
const ORDER_FUNCTIONS = `
local TURNS = P .. 'queue:turns'
-- The unfinished jobs of one user, a sorted set by order. A member is the arrival in 16 digits, a colon and the id.
local function jobsOf(user) return P .. 'queue:jobs-of:' .. user end
-- The user waits from now on: behind all users of the same priority.
local function takeNewTurn(user) call('ZADD', TURNS, call('INCR', P .. 'queue:turn'), user) end
-- The first jobs of a user: those that wait, as pairs of id and score, and the number of the others.
local function firstJobsOf(user)
  local waiting, running = {}, 0
  for _, member in ipairs(call('ZRANGE', jobsOf(user), 0, ${PLACED_JOBS - 1})) do
    local id = string.sub(member, ${ARRIVAL_DIGITS + 2})
    local score = call('ZSCORE', WAITING, id)
    if score then waiting[#waiting + 1] = {id, tonumber(score)} else running = running + 1 end
  end
  return waiting, running
end
local function arrange(user)
  local waiting, running = firstJobsOf(user)
  local turn = tonumber(call('ZSCORE', TURNS, user) or 0) % ${PRIORITY_UNIT}
  for k, job in ipairs(waiting) do
    local priority = math.min(running + k, ${HIGHEST_PRIORITY})
    local score = priority * ${PRIORITY_UNIT} + turn
    if job[2] ~= score then
      call('ZADD', WAITING, score, job[1])
      call('HSET', BULL .. job[1], 'priority', priority)
    end
  end
end
`;

/** The state of a run, and its events. */
const RUN_FUNCTIONS = `
local function runOf(id) return P .. 'run:' .. id end
local function publish(channel, message)
  call('PUBLISH', CHANNELS .. channel, message)
end
local function emit(id, fence, n, text)
  local at = fence .. '-' .. n
  call('XADD', runOf(id) .. ':events', 'MAXLEN', '~', ${MAX_ENTRIES}, at, 'e', text)
  publish(id .. ':live', 'e' .. at .. '\\n' .. text)
end
-- The field 'told' is the number of the last event.
local function emitNext(id, fence, text)
  emit(id, fence, tonumber(call('HGET', runOf(id), 'told') or 0) + 1, text)
end
local function isStale(id, fence)
  return call('HGET', runOf(id), 'fence') ~= fence or call('HEXISTS', runOf(id), 'end') == 1
end
local function removeProgress(run)
  call('HDEL', run, 'progress', 'cached', 'startedAtMs')
  for _, field in ipairs(call('HKEYS', run)) do
    if string.find(field, '^output:') or string.find(field, '^ui:') then call('HDEL', run, field) end
  end
end
local function undoBegin(id, fence)
  if call('HDEL', runOf(id), 'begun:' .. fence) == 1 then
    call('HINCRBY', runOf(id), 'attempts', -1)
  end
end
`;

const SCRIPTS = {
  /**
   * Enters a job into the queue. Returns the priority with which to add it to BullMQ, or 0 if BullMQ has the job. A job
   * whose end is decided is added too: a worker must record its end. ARGV id, user, order.
   */
  enter: `
local id, user, order = unpack(ARGV)
local run, highest = runOf(id), P .. 'queue:highest'
if call('EXISTS', BULL .. id) == 1 then return 0 end
if call('HEXISTS', run, 'end') == 1 then return 1 end
call('HSETNX', run, 'fence', 0)
call('HSET', run, 'status', 'queued', 'user', user)
local place = call('HGET', run, 'place')
if not place then
  local arrival = string.format('%0${ARRIVAL_DIGITS}d', call('INCR', P .. 'queue:entered'))
  place = arrival .. ':' .. id
  call('HSET', run, 'place', place)
  if #firstJobsOf(user) == 0 then takeNewTurn(user) end
end
call('ZADD', jobsOf(user), order, place)
local known = call('GET', highest)
if not known or tonumber(order) > tonumber(known) then call('SET', highest, order) end
return math.min(call('ZCARD', jobsOf(user)), ${HIGHEST_PRIORITY})`,
  /** Run this after a job of the user was added or returned to BullMQ. ARGV user. */
  arrange: 'arrange(ARGV[1])',
  /** The number of waiting jobs of a user, among the first `PLACED_JOBS`. ARGV user. */
  waitingOf: 'return #firstJobsOf(ARGV[1])',
  /**
   * A worker claims a job under a new fence; later writes of an earlier worker are stale. ARGV id, now in milliseconds,
   * the most attempts (empty: claim the job only to end it), worker.
   */
  claim: `
local run = runOf(ARGV[1])
local finish = call('HGET', run, 'end')
if finish then return {'ended', finish} end
local fence = call('HINCRBY', run, 'fence', 1)
removeProgress(run)
call('HSET', run, 'told', 0)
if ARGV[3] == '' then return {'run', fence} end
if call('HEXISTS', run, 'cancel') == 1 then return {'cancel', fence} end
local attempts = tonumber(call('HGET', run, 'attempts') or 0)
if attempts >= tonumber(ARGV[3]) then return {'lost', fence, attempts} end
call('HSET', run, 'status', 'running', 'startedAtMs', ARGV[2], 'worker', ARGV[4])
return {'run', fence, attempts}`,
  /**
   * Counts an attempt when the first node of a job begins. It is counted once for each fence, even if the command is
   * sent again. ARGV id, fence.
   */
  begin: `
local id, fence = unpack(ARGV)
if isStale(id, fence) then return 'stale' end
if call('HSETNX', runOf(id), 'begun:' .. fence, 1) == 1 then
  call('HINCRBY', runOf(id), 'attempts', 1)
end
return 'ok'`,
  /** A worker that seemed to be dead is alive: its attempt is not counted. ARGV id, the fence of that worker. */
  stillAlive: `
local id, fence = unpack(ARGV)
if call('HEXISTS', runOf(id), 'end') == 0 then undoBegin(id, fence) end`,
  /**
   * Stores and publishes events of a running job, each once and in order. ARGV id, fence, number of fields, fields and
   * values, then kind, number and text of each event. The number of a preview is 0.
   */
  append: `
local id, fence, run = ARGV[1], ARGV[2], runOf(ARGV[1])
if isStale(id, fence) then return 'stale' end
local lastNumber = tonumber(call('HGET', run, 'told') or 0)
local fieldsEnd = 3 + 2 * tonumber(ARGV[3])
for at = 4, fieldsEnd, 2 do call('HSET', run, ARGV[at], ARGV[at + 1]) end
for item = fieldsEnd + 1, #ARGV, 3 do
  local kind, n, text = ARGV[item], tonumber(ARGV[item + 1]), ARGV[item + 2]
  if kind == 'p' then publish(id .. ':live', 'p' .. text)
  elseif n > lastNumber then
    emit(id, fence, n, text)
    lastNumber = n
  end
end
call('HSET', run, 'told', lastNumber)
return call('HEXISTS', run, 'cancel') == 1 and 'cancel' or 'ok'`,
  /** Decides the end of a job, once. ARGV id, fence, status, end, status event. */
  end: `
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
elseif before == 'running' then takeNewTurn(user) end
arrange(user)
return 'ok'`,
  /**
   * A worker returns its job. The turn of its user becomes the first one, which `arrange` applies when BullMQ has the
   * job. ARGV id, fence, status event, `1` if the attempt is not counted.
   */
  requeue: `
local id, fence, event, returned = unpack(ARGV)
local run = runOf(id)
if isStale(id, fence) then return 'stale' end
emitNext(id, fence, event)
call('HINCRBY', run, 'fence', 1)
if returned == '1' then undoBegin(id, fence) end
removeProgress(run)
call('HSET', run, 'status', 'queued')
local user = call('HGET', run, 'user')
if user then call('ZADD', TURNS, 0, user) end
return 'ok'`,
  /** Records that a job is to be cancelled, and publishes this to the worker that claimed it last. ARGV id. */
  cancel: `
local id = ARGV[1]
if call('HEXISTS', runOf(id), 'end') == 1 then return 0 end
call('HSET', runOf(id), 'cancel', 1)
local worker = call('HGET', runOf(id), 'worker')
if worker then publish(worker .. ':cancel', id) end
return 1`,
  /** Reserves a number above the floor that was not reserved before. ARGV counter, floor, lifetime in milliseconds. */
  reserveCounter: `
local last = tonumber(call('GET', ARGV[1]) or 0)
local next = math.max(last, tonumber(ARGV[2])) + 1
call('SET', ARGV[1], next, 'PX', ARGV[3])
return next`,
};

/** The scripts of the queue, as functions. */
export type QueueScripts = Scripts<keyof typeof SCRIPTS>;

/** Defines the scripts of the queue on a connection. */
export function defineQueueScripts(redis: Redis, keys: QueueKeys): QueueScripts {
  const options = { namespace: 'queue', prefix: keys.prefix, prelude: prelude(keys) };
  return defineScripts(redis, SCRIPTS, options);
}
