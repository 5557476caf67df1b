/**
 * Lua about the leaders of prompts: the hash `leaders` has the token of the process that leads each
 * prompt. Replication elects the leaders, and the ledger in Redis refuses the writes of other
 * processes, so both prepend this to their scripts. It expects `P`, the prefix of all keys.
 * `mayWrite` also allows a write without a token when the prompt has no leader.
 */
export const LEADERS_LUA = `
local function leaderOf(key) return redis.call('HGET', P .. 'leaders', key) or '' end
local function mayWrite(key, token) return leaderOf(key) == token end
local function leads(key, token) return token ~= '' and leaderOf(key) == token end
local function setLeader(key, token) redis.call('HSET', P .. 'leaders', key, token) end
local function clearLeader(key) redis.call('HDEL', P .. 'leaders', key) end
`;
