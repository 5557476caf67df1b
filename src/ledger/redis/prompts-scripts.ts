import { MAY_WRITE_LUA } from '../leases.ts';
import { NOT_LEADER } from './write-tokens.ts';

const COMMON = `${MAY_WRITE_LUA}
local NOT_LEADER = ${NOT_LEADER}
local function at(key) return P .. 'prompt:' .. key end
local function value(key, name) return call('HGET', at(key), name) end
local function updateHistorySize(user)
  local n = call('ZCARD', P .. 'prompts:done:' .. user)
  if n > 0 then call('ZADD', P .. 'prompts:crowd', n, user)
  else call('ZREM', P .. 'prompts:crowd', user) end
end
local function addLive(key, user)
  local seq = value(key, 'seq')
  call('ZADD', P .. 'prompts:live', seq, key)
  call('ZADD', P .. 'prompts:live:' .. user, seq, key)
end
local function removeLive(key, user)
  call('ZREM', P .. 'prompts:live', key)
  call('ZREM', P .. 'prompts:live:' .. user, key)
end
local function addToIndexes(key)
  local r = call('HMGET', at(key), 'user', 'promptId', 'jobId', 'seq')
  call('ZADD', P .. 'prompts:id:' .. own(r[1], r[2]), r[4], key)
  if r[3] then call('ZADD', P .. 'prompts:job:' .. own(r[1], r[3]), r[4], key) end
end
local function removeFromIndexes(key)
  local r = call('HMGET', at(key), 'user', 'promptId', 'jobId')
  call('ZREM', P .. 'prompts:id:' .. own(r[1], r[2]), key)
  if r[3] then call('ZREM', P .. 'prompts:job:' .. own(r[1], r[3]), key) end
end
-- Bytes of a prompt's texts as they were counted when it ended; an older version did not.
local function bytesOf(key, user)
  local outline = call('HGET', P .. 'prompts:outlines:' .. user, key)
  return outline and cjson.decode(outline)[7] or 0
end
local function addBytes(user, change)
  if change == 0 then return end
  local total = tonumber(call('ZINCRBY', P .. 'prompts:bytes', change, user))
  if total <= 0 then call('ZREM', P .. 'prompts:bytes', user) end
end
local function addToHistory(key, user)
  removeLive(key, user)
  local done = P .. 'prompts:done:' .. user
  if not call('ZSCORE', done, key) then call('ZADD', done, next(), key) end
  local r = call('HMGET', at(key), 'promptId', 'statusWord', 'createdAtMs', 'startedAtMs',
    'endedAtMs')
  local stored = 0
  for _, text in ipairs({'entryJson', 'graphJson', 'extraDataJson', 'nodeTimesJson'}) do
    stored = stored + call('HSTRLEN', at(key), text)
  end
  addBytes(user, stored - bytesOf(key, user))
  local outline = cjson.encode({key, r[1], r[2], r[3], r[4], r[5], stored})
  call('HSET', P .. 'prompts:outlines:' .. user, key, outline)
  updateHistorySize(user)
end
local function removePrompt(key)
  local user = value(key, 'user')
  if not user then return end
  removeFromIndexes(key)
  removeLive(key, user)
  addBytes(user, -bytesOf(key, user))
  call('HDEL', P .. 'prompts:outlines:' .. user, key)
  if call('ZREM', P .. 'prompts:done:' .. user, key) == 1 then
    call('HINCRBY', P .. 'prompts:removals', user, 1)
  end
  call('ZREM', P .. 'prompts:numbers', key)
  updateHistorySize(user)
  call('UNLINK', at(key))
end
`;

/** Beyond this a number does not come from the counter: a client sent it to mean last or first. */
const HIGHEST_COUNTED = 1e9;

const insert = `${COMMON}
local token, key, leader = ARGV[1], ARGV[2], ARGV[3]
if call('EXISTS', at(key)) == 1 then
  if value(key, 'token') == token then return end
  return redis.error_reply('TAKEN prompts.key must be unique')
end
if call('EXISTS', P .. 'revoked:' .. token) == 1 then return end
if not mayWrite(key, leader) then return NOT_LEADER end
local seq = next()
set(at(key), 4)
call('HSET', at(key), 'seq', seq, 'token', token)
local r = call('HMGET', at(key), 'user', 'state', 'number')
addToIndexes(key)
if r[2] == 'done' then addToHistory(key, r[1]) else addLive(key, r[1]) end
local number = math.abs(tonumber(r[3]))
if number <= ${HIGHEST_COUNTED} then
  call('ZADD', P .. 'prompts:numbers', string.format('%.17g', number), key)
end`;

// The insertion may arrive after the revocation: a stalled Redis may still have it in a buffer.
const revoke = `${COMMON}
local token, key = ARGV[1], ARGV[2]
call('SET', P .. 'revoked:' .. token, 1, 'EX', 3600)
if value(key, 'token') == token then removePrompt(key) end`;

const change = `${COMMON}
local key = ARGV[1]
if value(key, 'user') then set(at(key), 2) end`;

/**
 * Changes the row of an unfinished prompt; `live`: only of one in this state, `unlinked`: only of one
 * without a job. When sent twice, another process may have finished the prompt before the second time.
 */
const update = `${COMMON}
local key, token, only = ARGV[1], ARGV[2], ARGV[3]
if not mayWrite(key, token) then return NOT_LEADER end
local was = call('HMGET', at(key), 'state', 'jobId')
if not was[1] or was[1] == 'done' then return end
if only == 'live' and was[1] ~= 'live' or only == 'unlinked' and was[2] then return end
removeFromIndexes(key)
set(at(key), 4)
addToIndexes(key)`;

const begin = `${COMMON}
local key, token, atMs = ARGV[1], ARGV[2], ARGV[3]
if not mayWrite(key, token) then return NOT_LEADER end
local was = value(key, 'state')
if was and was ~= 'done' then call('HSETNX', at(key), 'startedAtMs', atMs) end`;

// When sent twice, the prompt keeps its position in history.
const finish = `${COMMON}
local key, token = ARGV[1], ARGV[2]
if not mayWrite(key, token) then return NOT_LEADER end
local user = value(key, 'user')
if not user then return end
set(at(key), 3)
addToHistory(key, user)`;

const remove = `${COMMON}
local key, token = ARGV[1], ARGV[2]
if not mayWrite(key, token) then return NOT_LEADER end
removePrompt(key)`;

const deleteHistory = `${COMMON}
local user = ARGV[1]
for i = 2, #ARGV do
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:id:' .. own(user, ARGV[i]), 0, -1)) do
    if value(key, 'state') == 'done' then removePrompt(key) end
  end
end`;

const clearHistory = `${COMMON}
for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. ARGV[1], 0, -1)) do removePrompt(key) end`;

const pruneHistory = `${COMMON}
local limit = tonumber(ARGV[1])
for _, user in ipairs(call('ZRANGEBYSCORE', P .. 'prompts:crowd', '(' .. ARGV[1], '+inf')) do
  local keys = call('ZRANGE', P .. 'prompts:done:' .. user, 0, -1 - limit)
  for _, key in ipairs(keys) do removePrompt(key) end
end
local bytes = tonumber(ARGV[2])
for _, user in ipairs(call('ZRANGEBYSCORE', P .. 'prompts:bytes', '(' .. ARGV[2], '+inf')) do
  local total = tonumber(call('ZSCORE', P .. 'prompts:bytes', user))
  -- The newest stays however large it is.
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. user, 0, -2)) do
    if total <= bytes then break end
    total = total - bytesOf(key, user)
    removePrompt(key)
  end
end`;

const entries = `${COMMON}
local out = {}
for i, key in ipairs(ARGV) do
  local r = call('HMGET', at(key), 'state', 'entryJson')
  out[i] = r[1] == 'done' and r[2]
end
return out`;

const highestNumber = `
local found = call('ZRANGE', P .. 'prompts:numbers', -1, -1, 'WITHSCORES')
return found[2] or '-1'`;

// Searched by user: a separate index would lack the prompts that older versions wrote.
const hasJob = `${COMMON}
local job = ARGV[1]
for _, user in ipairs(call('ZRANGE', P .. 'prompts:crowd', 0, -1)) do
  if call('EXISTS', P .. 'prompts:job:' .. own(user, job)) == 1 then return 1 end
end
for _, key in ipairs(call('ZRANGE', P .. 'prompts:live', 0, -1)) do
  if value(key, 'jobId') == job then return 1 end
end
return 0`;

/** The scripts of the prompt store. */
export const PROMPT_SCRIPTS = {
  insert,
  revoke,
  update,
  begin,
  change,
  finish,
  remove,
  deleteHistory,
  clearHistory,
  pruneHistory,
  entries,
  hasJob,
  highestNumber,
};
