import type { JobRow, JobStore, KeyStore } from './ledger.ts';
import { type Link, idsOf, own } from './redis-link.ts';
import { type Columns, createTable, token } from './redis-table.ts';

const COLUMNS: Columns<JobRow> = {
  id: 'text',
  user: 'text',
  status: 'text',
  order: 'number',
  createdAtMs: 'number',
  startedAtMs: 'number',
  completedAtMs: 'number',
  expiresAtMs: 'number',
  workflowJson: 'text',
  provenanceJson: 'text',
  metadataJson: 'text',
  outputsJson: 'text',
  errorJson: 'text',
  extrasJson: 'text',
};

/** The jobs of the embedded engine. */
export function jobStore(link: Link): JobStore {
  const table = createTable<JobRow>(link, 'job', COLUMNS);
  const lua = link.scripts('jobs', { insert, update, list, remove });
  const { read, write, redis, prefix } = link;
  return {
    insert: (row) => write(() => lua.insert(row.id, token(), ...table.fields(row))),
    update: (id, patch) => write(() => lua.update(id, ...table.fields(patch))),
    get: table.get,
    async list(user, { limit, before }) {
      const ids = (await read(() => lua.list(user, limit, before ?? ''))) as Buffer[];
      return table.rows(ids.map(String));
    },
    async unfinished() {
      const members = await read(() => redis.zrange(`${prefix}jobs:unfinished`, 0, '-1'));
      return table.rows(idsOf(members));
    },
    expiredBy: async (nowMs) =>
      table.rows(
        await read(() => redis.zrangebyscore(`${prefix}jobs:expiry`, '-inf', String(nowMs))),
      ),
    remove: (id) => write(() => lua.remove(id)),
  };
}

/** Single-use idempotency keys. */
export function keyStore({ scripts, ask, write }: Link): KeyStore {
  const lua = scripts('keys', KEYS);
  return {
    claim: async ({ user, key, claimedAtMs }) =>
      (await ask(() => lua.claim(own(user, key), token(), claimedAtMs))) === 1,
    attach: (user, key, jobId) => write(() => lua.attach(own(user, key), jobId)),
    release: (user, key) => write(() => lua.release(own(user, key), token())),
    expire: (beforeMs) => write(() => lua.expire(beforeMs)),
  };
}

const COMMON = `
local function at(id) return P .. 'job:' .. id end
local function index(id)
  local r = call('HMGET', at(id), 'status', 'order', 'expiresAtMs', 'seq')
  local s = r[1]
  if s == 'queued' or s == 'running' or s == 'canceling' then
    call('ZREM', P .. 'jobs:expiry', id)
    call('ZADD', P .. 'jobs:unfinished', r[2], member(r[4], id))
  else
    call('ZREM', P .. 'jobs:unfinished', member(r[4], id))
    call('ZADD', P .. 'jobs:expiry', r[3], id)
  end
end
`;

const insert = `${COMMON}
local id, token = ARGV[1], ARGV[2]
if call('EXISTS', at(id)) == 1 then
  if call('HGET', at(id), 'token') == token then return end
  return redis.error_reply('TAKEN jobs.id must be unique')
end
local seq = next()
set(at(id), 3)
call('HSET', at(id), 'seq', seq, 'token', token)
call('ZADD', P .. 'jobs:of:' .. call('HGET', at(id), 'user'), seq, id)
index(id)`;

const update = `${COMMON}
if call('EXISTS', at(ARGV[1])) == 0 then return end
set(at(ARGV[1]), 2)
index(ARGV[1])`;

const list = `${COMMON}
local top = '+inf'
if ARGV[3] ~= '' then
  local seq = call('HGET', at(ARGV[3]), 'seq')
  if not seq then return {} end
  top = '(' .. seq
end
return call('ZREVRANGEBYSCORE', P .. 'jobs:of:' .. ARGV[1], top, '-inf', 'LIMIT', 0, ARGV[2])`;

const remove = `${COMMON}
local id = ARGV[1]
local r = call('HMGET', at(id), 'user', 'seq')
if not r[1] then return end
call('ZREM', P .. 'jobs:of:' .. r[1], id)
call('ZREM', P .. 'jobs:expiry', id)
call('ZREM', P .. 'jobs:unfinished', member(r[2], id))
call('UNLINK', at(id))`;

const KEYS = {
  claim: `
local key = P .. 'key:' .. ARGV[1]
if call('HSETNX', key, 'token', ARGV[2]) == 1 then
  call('HSET', key, 'claimedAtMs', ARGV[3])
  call('ZADD', P .. 'keys:age', ARGV[3], ARGV[1])
end
return call('HGET', key, 'token') == ARGV[2] and 1 or 0`,
  attach: `
local key = P .. 'key:' .. ARGV[1]
if call('EXISTS', key) == 1 then call('HSET', key, 'jobId', ARGV[2]) end`,
  release: `
if not once(ARGV[2]) then return end
call('UNLINK', P .. 'key:' .. ARGV[1])
call('ZREM', P .. 'keys:age', ARGV[1])`,
  expire: `
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'keys:age', '-inf', '(' .. ARGV[1])) do
  call('UNLINK', P .. 'key:' .. id)
  call('ZREM', P .. 'keys:age', id)
end`,
};
