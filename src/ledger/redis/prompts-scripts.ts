import { HIGHEST_COUNTED, OUTLINE_NAMES } from '../columns.ts';
import { MAY_WRITE_LUA } from '../leases.ts';
import { NOT_LEADER } from './write-tokens.ts';

const PROMPTS = `${MAY_WRITE_LUA}
local NOT_LEADER = ${NOT_LEADER}
local prompts = rowsOf('prompt', {'user', 'promptId', 'jobId', 'seq', 'state'},
  function(put, key, user, promptId, job, seq, state)
    put('prompts:id:' .. joinKey(user, promptId), seq, key)
    if job then put('prompts:job:' .. job, seq, key) end
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
-- The bytes of a prompt's texts, counted when it ended; 0 before.
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
  if not call('ZSCORE', done, key) then call('ZADD', done, nextSeq(), key) end
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

/** The beginning of the scripts that only the leader of a prompt may run. */
const LEADER_ONLY = `${PROMPTS}
local key, token = ARGV[1], ARGV[2]
if not mayWrite(key, token) then return NOT_LEADER end`;

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
  // The insertion may arrive after its revocation: a stalled Redis may still have it in a buffer.
  revoke: `${PROMPTS}
local token, key = ARGV[1], ARGV[2]
call('SET', P .. 'revoked:' .. token, 1, 'EX', 3600)
if prompts.values(key, 'token') == token then removePrompt(key) end`,
  /**
   * Changes the row of an unfinished prompt. ARGV[3] `live`: only a prompt in that state; `unlinked`: only a prompt
   * without a job. May be sent twice, and another process may have finished the prompt in between.
   */
  update: `${LEADER_ONLY}
local only, state, job = ARGV[3], prompts.values(key, 'state', 'jobId')
if not state or state == 'done' then return end
if only == 'live' and state ~= 'live' or only == 'unlinked' and job then return end
prompts.change(key, 4)`,
  begin: `${LEADER_ONLY}
local state = prompts.values(key, 'state')
if state and state ~= 'done' then call('HSETNX', prompts.at(key), 'startedAtMs', ARGV[3]) end`,
  change: `${PROMPTS}
local key = ARGV[1]
if prompts.values(key, 'user') then set(prompts.at(key), 2) end`,
  // May be sent twice: the prompt keeps its position in history.
  finish: `${LEADER_ONLY}
if not prompts.values(key, 'user') then return end
prompts.change(key, 3)
addToHistory(key)`,
  remove: `${LEADER_ONLY}
removePrompt(key)`,
  deleteHistory: `${PROMPTS}
local user = ARGV[1]
for i = 2, #ARGV do
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:id:' .. joinKey(user, ARGV[i]), 0, -1)) do
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
  -- The newest prompt is kept at any size.
  for _, key in ipairs(call('ZRANGE', P .. 'prompts:done:' .. user, 0, -2)) do
    if total <= bytes then break end
    total = total - bytesOf(key, user)
    removePrompt(key)
  end
end`,
};

/** The scripts of the prompt store that only read. */
export const PROMPT_READS = {
  entries: `${PROMPTS}
local out = {}
for i, key in ipairs(ARGV) do
  local state, entry = prompts.values(key, 'state', 'entryJson')
  out[i] = state == 'done' and entry
end
return out`,
  highestNumber: `
local found = call('ZRANGE', P .. 'prompts:numbers', -1, -1, 'WITHSCORES')
return found[2] or '-1'`,
};
