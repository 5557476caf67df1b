import type { AssetStore, KeyStore } from '../ledger.ts';
import { RECORD_KINDS } from '../records.ts';
import { FILES } from './files.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { Table, newToken } from './table.ts';

/** The asset records of the embedded engine; the bytes are files of their own. */
export function assetStore(connection: LedgerConnection): AssetStore {
  const table = new Table(connection, 'assets');
  const lua = connection.scripts('assets', { insert, remove });
  const { paths } = connection.scripts('asset-lists', { paths: PATHS }, 'read');
  const keys = new Table(connection, 'assetKeys');
  const { prefix, read, redis } = connection;
  return {
    async insert(row, key) {
      const { user, createdAtMs: claimedAtMs } = row;
      const keyId = key === undefined ? '' : joinKey(user, key);
      const keyFields = key === undefined ? [0] : keys.fields({ user, key, claimedAtMs });
      const args = [row.id, newToken(), keyId, ...keyFields, ...table.fields(row)];
      return (await lua.insert<number>(...args)) === 1;
    },
    get: (id) => table.get(id),
    byHash: (user, hash) => table.first(`assets:hash:${joinKey(user, hash)}`),
    byFilePath: (user, filePath) => table.last(`assets:path:${joinKey(user, filePath)}`),
    ofJob: (jobId) => table.listed(`assets:job:${jobId}`),
    async outputPaths(user, start) {
      const found = await paths<Buffer[]>(user, start);
      return found.map((member) => member.subarray(0, member.lastIndexOf(0)).toString());
    },
    expiredBy: (nowMs) => table.expiredBy(nowMs),
    oldest: async (limit) => (limit <= 0 ? [] : await table.numbered('assets:age', limit - 1)),
    remove: (id) => lua.remove(id),
    countByHash: (hash) => read(() => redis.scard(`${prefix}assets:same:${hash}`)),
    totalBytes: () => connection.number('assets:bytes'),
  };
}

const ASSETS = `
local assets = rowsOf('asset',
  {'user', 'hash', 'filePath', 'createdAtMs', 'expiresAtMs', 'jobId', 'seq'},
  function(put, id, user, hash, path, created, expires, job, seq)
    put('assets:age', created, member(seq, id))
    put('assets:hash:' .. joinKey(user, hash), seq, id)
    put('assets:path:' .. joinKey(user, path), seq, id)
    if expires then put('assets:expiry', expires, id) end
    if job then
      put('assets:job:' .. job, seq, id)
      put('assets:outputs:' .. user, 0, path .. '\\0' .. id)
    end
  end)
`;

const insert = `${ASSETS}
local id, token, claim, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local made, user = assets.values(id, 'token', 'user')
if user then return made == token and 1 or TAKEN end
if claim ~= '' then
  local key = P .. 'asset-key:' .. claim
  if call('EXISTS', key) == 1 then return 0 end
  call('HSET', key, unpack(ARGV, 5, 4 + 2 * n))
  call('ZADD', P .. 'asset-keys:age', call('HGET', key, 'claimedAtMs'), claim)
end
assets.insert(id, token, 5 + 2 * n)
local hash, size = assets.values(id, 'hash', 'sizeBytes')
local same = P .. 'assets:same:' .. hash
if call('EXISTS', same) == 0 then call('INCRBY', P .. 'assets:bytes', size) end
call('SADD', same, id)
return 1`;

// The name of an output stays reserved: history shows it, so it must never refer to another picture.
const remove = `${ASSETS}${FILES}
local id = ARGV[1]
local user, hash, size, job = assets.values(id, 'user', 'hash', 'sizeBytes', 'jobId')
if not user then return end
if job then call('SET', removed(id), 1, 'EX', 3600) end
local same = P .. 'assets:same:' .. hash
call('SREM', same, id)
if call('EXISTS', same) == 0 then call('DECRBY', P .. 'assets:bytes', size) end
assets.remove(id)
for _, name in ipairs(call('ZRANGE', P .. 'files:asset:' .. joinKey(user, id), 0, -1)) do
  if files.values(name, 'type') == 'output' then
    files.unlist(name)
    call('HSET', files.at(name), 'assetId', '')
  else files.remove(name) end
end`;

// The byte 255 occurs in no UTF-8 text, so the upper bound comes after each text that starts with the prefix.
const PATHS = `
return call('ZRANGEBYLEX', P .. 'assets:outputs:' .. ARGV[1], '[' .. ARGV[2],
  '(' .. ARGV[2] .. '\\255')`;

/** Single-use idempotency keys, of jobs and of assets. */
export function keyStore(connection: LedgerConnection): KeyStore {
  const lua = connection.scripts('keys', { put, expire });
  const table = new Table(connection, 'jobKeys');
  return {
    async put(kind, row) {
      const { user, key, claimedAtMs } = row;
      const id = joinKey(user, key);
      await lua.put(RECORD_KINDS[kind].redisKey, id, claimedAtMs, ...table.fields(row));
    },
    expire: (beforeMs) => lua.expire(beforeMs),
  };
}

const put = `
local kind, id, at = unpack(ARGV, 1, 3)
set(P .. kind .. ':' .. id, 4)
call('ZADD', P .. kind .. 's:age', at, id)`;

const expire = `
dropBefore('keys:age', 'key', ARGV[1])
dropBefore('asset-keys:age', 'asset-key', ARGV[1])`;
