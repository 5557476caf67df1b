import { OUTLINE_NAMES } from '../columns.ts';
import { MAY_WRITE_LUA } from '../leases.ts';
import { NOT_LEADER } from './write-tokens.ts';

const PROMPTS = `${MAY_WRITE_LUA}
local NOT_LEADER = ${NOT_LEADER}
local prompts = rowsOf('prompt', {'user', 'promptId', 'jobId', 'seq', 'state'},
  function(put, key, user, promptId, job, seq, state)
    put('prompts:id:' .. own(user, promptId), seq, key)
    if job then put('prompts:job:' .. own(user, job), seq, key) end
    if state ~= 'done' then
      put('prompts:live', seq, key)
      put('prompts:live:' .. user, seq, key)
    end
  end)
local function updateHistorySize(user)
  local n = call('ZCARD', P .. 'prompts:done:' .. user)
  if n > 0 then call('ZADD', P .. 'prompts:crowd', n, user)
  else call('ZREM', P .. 'prompts:crowd', user) end
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
local function addToHistory(key)
  local user = prompts.values(key, 'user')
  local done = P .. 'prompts:done:' .. user
  if not call('ZSCORE', done, key) then call('ZADD', done, next(), key) end
  local stored = 0
  for _, text in ipairs({'entryJson', 'graphJson', 'extraDataJson', 'nodeTimesJson'}) do
    stored = stored + call('HSTRLEN', prompts.at(key), text)
  end
  addBytes(user, stored - bytesOf(key, user))
  local outline = {prompts.values(key, ${OUTLINE_NAMES.map((name) => `'${name}'`).join(', ')})}
  outline[#outline + 1] = stored
  call('HSET', P .. 'prompts:outlines:' .. user, key, cjson.encode(outline))
  updateHistorySize(user)
end
local function removePrompt(key)
  local user = prompts.values(key, 'user')
  if not user then return end
  addBytes(user, -bytesOf(key, user))
  call('HDEL', P .. 'prompts:outlines:' .. user, key)
  if call('ZREM', P .. 'prompts:done:' .. user, key) == 1 then
    call('HINCRBY', P .. 'prompts:removals', user, 1)
  end
  call('ZREM', P .. 'prompts:numbers', key)
  updateHistorySize(user)
  prompts.remove(key)
end
`;

/** Of the scripts that only the leader of a prompt may run. */
const LED = `${PROMPTS}
local key, token = ARGV[1], ARGV[2]
if not mayWrite(key, token) then return NOT_LEADER end`;

/** Beyond this a number does not come from the counter: a client sent it to mean last or first. */
const HIGHEST_COUNTED = 1e9;

/** The scripts of the prompt store. */
export const PROMPT_SCRIPTS = {
  insert: `${PROMPTS}
local token, key, leader = ARGV[1], ARGV[2], ARGV[3]
local made, user = prompts.values(key, 'token', 'user')
if user then return made ~= token and TAKEN end
if call('EXISTS', P .. 'revoked:' .. token) == 1 then return end
if not mayWrite(key, leader) then return NOT_LEADER end
prompts.insert(key, token, 4)
local state, given = prompts.values(key, 'state', 'number')
if state == 'done' then addToHistory(key) end
local number = math.abs(tonumber(given))
if number <= ${HIGHEST_COUNTED} then
  call('ZADD', P .. 'prompts:numbers', string.format('%.17g', number), key)
end`,
  // The insertion may arrive after the revocation: a stalled Redis may still have it in a buffer.
  revoke: `${PROMPTS}
local token, key = ARGV[1], ARGV[2]
call('SET', P .. 'revoked:' .. token, 1, 'EX', 3600)
if prompts.values(key, 'token') == token then removePrompt(key) end`,
  /**
   * Changes the row of an unfinished prompt; `live`: only of one in this state, `unlinked`: only of one
   * without a job. When sent twice, another process may have finished the prompt before the second time.
   */
  update: `${LED}
local only, state, job = ARGV[3], prompts.values(key, 'state', 'jobId')
if not state or state == 'done' then return end
if only == 'live' and state ~= 'live' or only == 'unlinked' and job then return end
prompts.change(key, 4)`,
  begin: `${LED}
local state = prompts.values(key, 'state')
if state and state ~= 'done' then call('HSETNX', prompts.at(key), 'startedAtMs', ARGV[3]) end`,
  change: `${PROMPTS}
local key = ARGV[1]
if prompts.values(key, 'user') then set(prompts.at(key), 2) end`,
  // When sent twice, the prompt keeps its position in history.
  finish: `${LED}
if not prompts.values(key, 'user') then return end
prompts.change(key, 3)
addToHistory(key)`,
  remove: `${LED}
removePrompt(key)`,
  deleteHistory: `${PROMPTS}
local user = ARGV[1]
for i = 2, #ARGV do
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:id:' .. own(user, ARGV[i]), 0, -1)) do
    if prompts.values(key, 'state') == 'done' then removePrompt(key) end
  end
end`,
  clearHistory: `${PROMPTS}
for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. ARGV[1], 0, -1)) do removePrompt(key) end`,
  pruneHistory: `${PROMPTS}
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
end`,
};

/** Those that only read. */
export const PROMPT_READS = {
  entries: `${PROMPTS}
local out = {}
for i, key in ipairs(ARGV) do
  local state, entry = prompts.values(key, 'state', 'entryJson')
  out[i] = state == 'done' and entry
end
return out`,
  // Searched by user: a separate index would lack the prompts that older versions wrote.
  hasJob: `${PROMPTS}
local job = ARGV[1]
for _, user in ipairs(call('ZRANGE', P .. 'prompts:crowd', 0, -1)) do
  if call('EXISTS', P .. 'prompts:job:' .. own(user, job)) == 1 then return 1 end
end
for _, key in ipairs(call('ZRANGE', P .. 'prompts:live', 0, -1)) do
  if prompts.values(key, 'jobId') == job then return 1 end
end
return 0`,
  highestNumber: `
local found = call('ZRANGE', P .. 'prompts:numbers', -1, -1, 'WITHSCORES')
return found[2] or '-1'`,
};
