import type { QueueKeys } from './redis-keys.ts';

/** So many jobs of each user have their exact place; those behind get it when they come there. */
const PLACED_JOBS = 128;
/** BullMQ keeps a priority in the high half of a score; the low half decides among equals. */
const PRIORITY_UNIT = 2 ** 32;
const HIGHEST_PRIORITY = 2 ** 21 - 1;
/** Digits before the colon and the id in a member of `jobsOf`. */
const ARRIVAL_DIGITS = 16;
/** Entries of a job's stream: far more than a subscriber can be behind. */
const MAX_ENTRIES = 10_000;

/**
 * The functions of all scripts of the queue. `arrange` gives each waiting job of a user its priority
 * in BullMQ: one more than the jobs of the user that run or wait before it.
 */
export const queuePrelude = (keys: QueueKeys): string => `
local call = redis.call
local P, BULL, WAITING = '${keys.prefix}', '${keys.ofBull}', '${keys.waiting}'
local TURNS = P .. 'queue:turns'
local function runOf(id) return P .. 'run:' .. id end
-- The unfinished jobs of one user: 16 digits of arrival and a colon before the id.
local function jobsOf(user) return P .. 'queue:jobs-of:' .. user end
local function waitsAnew(user) call('ZADD', TURNS, call('INCR', P .. 'queue:turn'), user) end
local function placesOf(user)
  local waiting, running = {}, 0
  for _, member in ipairs(call('ZRANGE', jobsOf(user), 0, ${PLACED_JOBS - 1})) do
    local id = string.sub(member, ${ARRIVAL_DIGITS + 2})
    local score = call('ZSCORE', WAITING, id)
    if score then waiting[#waiting + 1] = {id, tonumber(score)} else running = running + 1 end
  end
  return waiting, running
end
local function arrange(user)
  local waiting, running = placesOf(user)
  local since = tonumber(call('ZSCORE', TURNS, user) or 0) % ${PRIORITY_UNIT}
  for k, job in ipairs(waiting) do
    local priority = math.min(running + k, ${HIGHEST_PRIORITY})
    local score = priority * ${PRIORITY_UNIT} + since
    if job[2] ~= score then
      call('ZADD', WAITING, score, job[1])
      call('HSET', BULL .. job[1], 'priority', priority)
    end
  end
end
local function publish(channel, message)
  call('${keys.publish}', '${keys.runChannels}' .. channel, message)
end
local function emit(id, fence, n, text)
  local at = fence .. '-' .. n
  call('XADD', runOf(id) .. ':events', 'MAXLEN', '~', ${MAX_ENTRIES}, at, 'e', text)
  publish(id .. ':live', 'e' .. at .. '\\n' .. text)
end
local function emitNext(id, fence, text)
  emit(id, fence, tonumber(call('HGET', runOf(id), 'told') or 0) + 1, text)
end
local function isStale(id, fence)
  return call('HGET', runOf(id), 'fence') ~= fence or call('HEXISTS', runOf(id), 'end') == 1
end
local function dropState(run)
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

/**
 * A job enters the queue. Returns the priority to give it to BullMQ with: 0 for one that is over, or
 * that BullMQ has. ARGV id, user, order.
 */
export const enter = `
local id, user, order = unpack(ARGV)
local run, highest = runOf(id), P .. 'queue:highest'
if call('HEXISTS', run, 'end') == 1 or call('EXISTS', BULL .. id) == 1 then return 0 end
call('HSETNX', run, 'fence', 0)
call('HSET', run, 'status', 'queued', 'user', user)
local place = call('HGET', run, 'place')
if not place then
  local arrival = string.format('%0${ARRIVAL_DIGITS}d', call('INCR', P .. 'queue:entered'))
  place = arrival .. ':' .. id
  call('HSET', run, 'place', place)
  if #placesOf(user) == 0 then waitsAnew(user) end
end
call('ZADD', jobsOf(user), order, place)
local known = call('GET', highest)
if not known or tonumber(order) > tonumber(known) then call('SET', highest, order) end
return math.min(call('ZCARD', jobsOf(user)), ${HIGHEST_PRIORITY})`;

/** BullMQ has got a job of this user, or has it back. ARGV user. */
export const arrange = 'arrange(ARGV[1])';

/** How many jobs of a user wait, among the first ones. ARGV user. */
export const waitingOf = 'return #placesOf(ARGV[1])';

/** A client asks to cancel a job; the worker that may run it is told. ARGV id. */
export const cancel = `
local id = ARGV[1]
if call('HEXISTS', runOf(id), 'end') == 1 then return 0 end
call('HSET', runOf(id), 'cancel', 1)
local worker = call('HGET', runOf(id), 'worker')
if worker then publish(worker .. ':cancel', id) end
return 1`;
