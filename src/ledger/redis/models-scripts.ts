const REPLAYS = `
local function at(id) return P .. 'replay:' .. id end
local function size(id)
  local held = call('HMGET', at(id), 'state', 'body')
  return held[1] == 'recorded' and held[2] and #held[2] or 0
end
local function count(bytes) if bytes ~= 0 then call('INCRBY', P .. 'replays:bytes', bytes) end end
local function removeReplay(id)
  count(-size(id))
  call('UNLINK', at(id))
  call('ZREM', P .. 'replays:age', id)
end
`;

/** The scripts of the replay store; a holder that has lost its key changes nothing. */
export const REPLAY_SCRIPTS = {
  reserve: `${REPLAYS}
local id, token, before, n = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local held = call('HMGET', at(id), 'token', 'atMs')
if held[1] == token then return false end
if held[1] and tonumber(held[2]) < before then
  removeReplay(id)
  held[1] = false
end
if held[1] then return call('HMGET', at(id), unpack(ARGV, 5, 4 + n)) end
set(at(id), 5 + n)
call('HSET', at(id), 'token', token)
call('ZADD', P .. 'replays:age', call('HGET', at(id), 'atMs'), id)
return false`,
  settle: `${REPLAYS}
local id = ARGV[1]
if call('HGET', at(id), 'requestId') ~= ARGV[2] then return end
local before = size(id)
set(at(id), 3)
count(size(id) - before)
call('ZADD', P .. 'replays:age', call('HGET', at(id), 'atMs'), id)`,
  release: `${REPLAYS}
if call('HGET', at(ARGV[1]), 'requestId') == ARGV[2] then removeReplay(ARGV[1]) end`,
  expire: `${REPLAYS}
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'replays:age', '-inf', '(' .. ARGV[1])) do
  removeReplay(id)
end`,
};

const CALLS = `
local function at(id) return P .. 'model-call:' .. id end
local function charged(id, sign)
  local r = call('HMGET', at(id), 'workspace', 'chargedCents', 'endedAtMs')
  if r[2] == '0' then call('ZADD', P .. 'model-calls:free', r[3], id)
  else
    call('HINCRBY', P .. 'model-calls:charged', r[1], sign * tonumber(r[2]))
    call('ZREM', P .. 'model-calls:free', id)
  end
end
`;

/** The scripts of the store of audit records. */
export const MODEL_CALL_SCRIPTS = {
  insert: `${CALLS}
local id, token = ARGV[1], ARGV[2]
if call('EXISTS', at(id)) == 1 then
  if call('HGET', at(id), 'token') == token then return end
  return redis.error_reply('TAKEN model_calls.request_id must be unique')
end
set(at(id), 3)
call('HSET', at(id), 'token', token)
charged(id, 1)`,
  amend: `${CALLS}
local id = ARGV[1]
if call('EXISTS', at(id)) == 0 then return end
charged(id, -1)
set(at(id), 2)
charged(id, 1)`,
  expire: `${CALLS}
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'model-calls:free', '-inf', '(' .. ARGV[1])) do
  call('UNLINK', at(id))
  call('ZREM', P .. 'model-calls:free', id)
end`,
};
