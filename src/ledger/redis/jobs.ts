import type { JobStore } from '../ledger.ts';
import type { LedgerConnection } from './connection.ts';
import { Table, newToken } from './table.ts';

/** The jobs of the embedded engine. */
export function jobStore(connection: LedgerConnection): JobStore {
  const table = new Table(connection, 'jobs');
  const lua = connection.scripts('jobs', { insert, update, remove });
  const { list } = connection.scripts('job-lists', { list: LIST }, 'read');
  return {
    async insert(row, key = '') {
      const head = [row.id, newToken(), row.user, key, row.createdAtMs];
      return (await lua.insert<number>(...head, ...table.fields(row))) === 1;
    },
    update: (id, patch) => lua.update(id, ...table.fields(patch)),
    get: (id) => table.get(id),
    async list(user, { limit, before }) {
      const ids = await list<Buffer[]>(user, limit, before ?? '');
      return table.rows(ids.map(String));
    },
    unfinished: () => table.numbered('jobs:unfinished'),
    expiredBy: (nowMs) => table.expiredBy(nowMs),
    remove: (id) => lua.remove(id),
  };
}

const JOBS = `
local jobs = rowsOf('job', {'user', 'status', 'order', 'expiresAtMs', 'seq'},
  function(put, id, user, status, order, expires, seq)
    put('jobs:of:' .. user, seq, id)
    if status == 'queued' or status == 'running' or status == 'canceling' then
      put('jobs:unfinished', order, member(seq, id))
    else put('jobs:expiry', expires, id) end
  end)
`;

const insert = `${JOBS}
local id, token, owner, claim, now = unpack(ARGV, 1, 5)
local made, user = jobs.values(id, 'token', 'user')
if user then
  if made == token then return 1 end
  -- A key that equals the id of its job counts as used once the job exists.
  return owner == user and claim == id and 0 or TAKEN
end
if claim ~= '' then
  local key = joinKey(owner, claim)
  if call('HSETNX', P .. 'key:' .. key, 'claimedAtMs', now) == 0 then return 0 end
  call('HSET', P .. 'key:' .. key, 'user', owner, 'key', claim)
  call('ZADD', P .. 'keys:age', now, key)
end
jobs.insert(id, token, 6)
return 1`;

const update = `${JOBS}
if jobs.values(ARGV[1], 'user') then jobs.change(ARGV[1], 2) end`;

const LIST = `${JOBS}
local top = '+inf'
if ARGV[3] ~= '' then
  local seq = jobs.values(ARGV[3], 'seq')
  if not seq then return {} end
  top = '(' .. seq
end
return call('ZREVRANGEBYSCORE', P .. 'jobs:of:' .. ARGV[1], top, '-inf', 'LIMIT', 0, ARGV[2])`;

const remove = `${JOBS}
jobs.remove(ARGV[1])`;
