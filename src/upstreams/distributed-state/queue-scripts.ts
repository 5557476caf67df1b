/**
 * Users take turns as in a single process (fair-order.ts). A ticket of BullMQ is the right to run
 * one job; the job is chosen when a worker is free. KEYS of every script that begins with this:
 * run, waiting, turns, turn, held, tickets, waiting-of.
 */
export const QUEUE_PRELUDE = `
local run, waiting, turns, turn, held, tickets, waitingPrefix = unpack(KEYS, 1, 7)
local function userOf(key) return redis.call('HGET', key, 'user') or '' end
local function addWaiting(id, user, score)
  redis.call('ZADD', waiting, score, id)
  redis.call('ZADD', waitingPrefix .. user, score, id)
  if not redis.call('ZSCORE', turns, user) then
    redis.call('ZADD', turns, redis.call('INCR', turn), user)
  end
end
local function removeWaiting(id, user)
  redis.call('ZREM', waiting, id)
  if redis.call('ZREM', waitingPrefix .. user, id) == 0 then return 0 end
  if redis.call('ZCARD', waitingPrefix .. user) == 0 then redis.call('ZREM', turns, user) end
  return 1
end
local function releaseHeld(id, user)
  local ticket = redis.call('HGET', run, 'ticket')
  if ticket and redis.call('HGET', tickets, ticket) == id then
    redis.call('HDEL', tickets, ticket)
  end
  redis.call('HDEL', run, 'ticket')
  if redis.call('HDEL', held, id) == 1 and redis.call('ZSCORE', turns, user) then
    redis.call('ZADD', turns, redis.call('INCR', turn), user)
  end
end`;

/**
 * Adds a job to the queue. One that waits already, or that a worker has, stays. A worker has a job
 * as long as the ticket exists with which it was taken. KEYS queue, entered, highest. ARGV id,
 * priority, order, channel, user, key prefix of tickets.
 */
const enqueue = `${QUEUE_PRELUDE}
if redis.call('HEXISTS', run, 'end') == 1 then return 0 end
if redis.call('HSETNX', run, 'fence', 0) == 1 then
  redis.call('HSET', run, 'status', 'queued')
end
redis.call('HSET', run, 'user', ARGV[5])
if redis.call('ZSCORE', waitingPrefix .. ARGV[5], ARGV[1]) then return 0 end
local ticket = redis.call('HGET', run, 'ticket')
if ticket then
  if redis.call('EXISTS', ARGV[6] .. ticket) == 1 then return 0 end
  releaseHeld(ARGV[1], ARGV[5])
  redis.call('HSET', run, 'status', 'queued')
elseif redis.call('HGET', run, 'status') ~= 'queued' then
  return 0
end
local arrival = redis.call('INCR', KEYS[8]) % 4294967296
addWaiting(ARGV[1], ARGV[5], ARGV[2] * 4294967296 + arrival)
local highest = redis.call('GET', KEYS[9])
if not highest or tonumber(ARGV[3]) > tonumber(highest) then
  redis.call('SET', KEYS[9], ARGV[3])
end
redis.call('PUBLISH', ARGV[4], 'moved')
return 1`;

/**
 * The job for a ticket. A job whose worker crashed is found again by the same ticket; otherwise it
 * is the next job of the user with the fewest jobs at workers, among equals of the one who has
 * waited longest. KEYS queue, with the key prefix of runs first. ARGV ticket.
 */
const take = `${QUEUE_PRELUDE}
local function assign(id, user)
  redis.call('HSET', held, id, user)
  redis.call('HSET', tickets, ARGV[1], id)
  redis.call('HSET', run .. id, 'ticket', ARGV[1])
  return id
end
local function isOver(id)
  return redis.call('HEXISTS', run .. id, 'fence') == 0 or redis.call('HEXISTS', run .. id, 'end') == 1
end
local before = redis.call('HGET', tickets, ARGV[1])
if before and not isOver(before) and redis.call('HGET', run .. before, 'ticket') == ARGV[1] then
  return before
end
local status, ticket = unpack(redis.call('HMGET', run .. ARGV[1], 'status', 'ticket'))
if status == 'running' and not ticket and not isOver(ARGV[1]) then
  return assign(ARGV[1], userOf(run .. ARGV[1]))
end
local running, count = {}, 0
for _, user in ipairs(redis.call('HVALS', held)) do
  running[user] = (running[user] or 0) + 1
  count = count + 1
end
local chosen, least
for _, user in ipairs(redis.call('ZRANGE', turns, 0, count)) do
  local has = running[user] or 0
  if not least or has < least then chosen, least = user, has end
end
if not chosen then
  redis.call('HDEL', tickets, ARGV[1])
  return false
end
local id = redis.call('ZRANGE', waitingPrefix .. chosen, 0, 0)[1]
removeWaiting(id, chosen)
return assign(id, chosen)`;

/** Removes a waiting job: no worker will get it. KEYS queue. ARGV id. */
const withdraw = `${QUEUE_PRELUDE}
return removeWaiting(ARGV[1], userOf(run))`;

/** A worker has finished with a job. KEYS queue. ARGV id, its ticket. */
const drop = `${QUEUE_PRELUDE}
if redis.call('HGET', tickets, ARGV[2]) == ARGV[1] then redis.call('HDEL', tickets, ARGV[2]) end
local user = userOf(run)
removeWaiting(ARGV[1], user)
releaseHeld(ARGV[1], user)
return 1`;

/**
 * The positions of waiting jobs: how many will be taken before each if none is added or removed; -1
 * when it does not wait. KEYS queue, with the key prefix of runs first. ARGV ids.
 */
const positions = `${QUEUE_PRELUDE}
local running = {}
for _, user in ipairs(redis.call('HVALS', held)) do running[user] = (running[user] or 0) + 1 end
local users, at, jobs = redis.call('ZRANGE', turns, 0, -1), {}, {}
for i, user in ipairs(users) do
  at[user] = i
  jobs[i] = redis.call('ZCARD', waitingPrefix .. user)
end
local rounds = {}
local function roundOf(number)
  local round = rounds[number]
  if round then return round end
  round = { before = 0, ahead = {} }
  local taken = 0
  for i, user in ipairs(users) do
    local turnsHad = number - (running[user] or 0)
    round.before = round.before + math.max(0, math.min(turnsHad, jobs[i]))
    round.ahead[i] = taken
    if turnsHad >= 0 and turnsHad < jobs[i] then taken = taken + 1 end
  end
  rounds[number] = round
  return round
end
local found = {}
for i, id in ipairs(ARGV) do
  local user = userOf(run .. id)
  local own = at[user] and redis.call('ZRANK', waitingPrefix .. user, id)
  if own then
    local round = roundOf(own + (running[user] or 0))
    found[i] = round.before + round.ahead[at[user]]
  else
    found[i] = -1
  end
end
return found`;

/** Scripts that change the queue alone. */
export const QUEUE_SCRIPTS = { enqueue, take, withdraw, drop, positions };
