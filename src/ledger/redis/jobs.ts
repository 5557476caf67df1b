import { JOB_COLUMNS } from '../columns.ts';
import type { JobRow, JobStore } from '../ledger.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { createTable, newToken } from './table.ts';

/** The jobs of the embedded engine. */
export function jobStore(connection: LedgerConnection): JobStore {
  const table = createTable<JobRow>(connection, 'job', JOB_COLUMNS);
  const lua = connection.scripts('jobs', { insert, update, list, remove });
  const { read, write, ask } = connection;
  return {
    async insert(row, key) {
      const claim = key === undefined ? '' : joinKey(row.user, key);
      const args = [row.id, newToken(), claim, row.createdAtMs, ...table.fields(row)];
      return (await ask(() => lua.insert(...args))) === 1;
    },
    update: (id, patch) => write(() => lua.update(id, ...table.fields(patch))),
    get: table.get,
    async list(user, { limit, before }) {
      const ids = (await read(() => lua.list(user, limit, before ?? ''))) as Buffer[];
      return table.rows(ids.map(String));
    },
    unfinished: () => table.numbered('jobs:unfinished'),
    expiredBy: table.expiredBy,
    remove: (id) => write(() => lua.remove(id)),
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

/**
 * An older version claims a key and inserts its job within this time, unless it crashes in between.
 */
const OLD_CLAIM_MS = 60_000;

const insert = `${COMMON}
local id, token, claim, now = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
if call('EXISTS', at(id)) == 1 then
  if call('HGET', at(id), 'token') == token then return 1 end
  local user = call('HGET', at(id), 'user')
  -- A key that is the id of its job (see joinKey) makes that job once.
  if claim == #user .. ':' .. user .. ':' .. id then return 0 end
  return redis.error_reply('TAKEN jobs.id must be unique')
end
if claim ~= '' then
  local key = P .. 'key:' .. claim
  local held = call('HMGET', key, 'claimedAtMs', 'jobId')
  if held[1] and (held[2] or tonumber(held[1]) > now - ${OLD_CLAIM_MS}) then return 0 end
  call('HSET', key, 'claimedAtMs', now, 'jobId', id)
  call('ZADD', P .. 'keys:age', now, claim)
end
local seq = next()
set(at(id), 5)
call('HSET', at(id), 'seq', seq, 'token', token)
call('ZADD', P .. 'jobs:of:' .. call('HGET', at(id), 'user'), seq, id)
index(id)
return 1`;

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
