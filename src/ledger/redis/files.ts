import { LRUCache } from 'lru-cache';
import type { FilePlace, FileRow, FileStore, LabelStore } from '../ledger.ts';
import { type LedgerConnection, idsOf, joinKey } from './connection.ts';
import { Table, newToken } from './table.ts';

/** A list of files and its version. Each change of the list increases the version. */
type CachedList = { readonly version: string | null; readonly rows: readonly FileRow[] };

/** The most files in all cached lists of a process together. */
const MAX_CACHED_FILES = 100_000;

/** v1 file names and the assets behind them. */
export function fileStore(connection: LedgerConnection): FileStore {
  const table = new Table(connection, 'files');
  const lua = connection.scripts('files', { put, claim, remove });
  const cached = new LRUCache<string, CachedList>({
    maxSize: MAX_CACHED_FILES,
    sizeCalculation: ({ rows }) => rows.length + 1,
  });
  const { prefix, read, redis } = connection;
  const argsOf = (row: FileRow) => [idOf(row.user, row), newToken(), ...table.fields(row)] as const;
  return {
    put: async (row) => lua.put(...argsOf(row)),
    claim: async (row) => (await lua.claim<number>(...argsOf(row))) === 1,
    get: (user, name) => table.get(idOf(user, name)),
    byAsset: (user, assetId) => table.first(`files:asset:${joinKey(user, assetId)}`),
    async list(user, type) {
      const name = joinKey(user, type);
      // Read the version before the list: then the next call reads a list again that changed in between.
      const version = await read(() => redis.hget(`${prefix}files:versions`, name));
      const cachedList = cached.get(name);
      if (cachedList?.version === version) return cachedList.rows;
      const members = await read(() => redis.zrevrange(`${prefix}files:list:${name}`, 0, -1));
      const rows = await table.rows(idsOf(members));
      cached.set(name, { version, rows });
      return rows;
    },
    remove: (user, name) => lua.remove(idOf(user, name), newToken()),
  };
}

/** The texts of users, a hash for each user: the settings of front ends, or the labels of files. */
export function textStore(
  { redis, prefix, read, write }: LedgerConnection,
  name: 'settings' | 'asset-labels',
): LabelStore {
  const keyOf = (user: string): string => `${prefix}${name}:${user}`;
  return {
    all: (user) => read(() => redis.hgetall(keyOf(user))),
    merge: async (user, texts) => {
      const pairs = Object.entries(texts).flat();
      if (pairs.length > 0) await write(() => redis.hset(keyOf(user), ...pairs));
    },
    remove: async (user, id) => {
      await write(() => redis.hdel(keyOf(user), id));
    },
  };
}

function idOf(user: string, name: FilePlace): string {
  return joinKey(user, joinKey(name.type, joinKey(name.subfolder, name.filename)));
}

/** Lua for the rows of files, also used by the script that removes an asset. A name without an asset is not listed. */
export const FILES = `
local function removed(asset) return P .. 'asset-removed:' .. asset end
local files = rowsOf('file', {'user', 'type', 'assetId', 'modifiedAtMs', 'seq'},
  function(put, id, user, type, asset, modified, seq)
    if asset == '' then return end
    call('HINCRBY', P .. 'files:versions', joinKey(user, type), 1)
    put('files:list:' .. joinKey(user, type), modified, member(seq, id))
    put('files:asset:' .. joinKey(user, asset), seq, id)
  end)
`;

const put = `${FILES}
files.remove(ARGV[1])
files.insert(ARGV[1], ARGV[2], 3)`;

// A repeated claim may arrive after its output was removed: then the output gets no name.
const claim = `${FILES}
local id, token = ARGV[1], ARGV[2]
local made, asset = files.values(id, 'token', 'assetId')
if asset then return made == token and 1 or 0 end
files.insert(id, token, 3)
if call('EXISTS', removed(files.values(id, 'assetId'))) == 1 then files.remove(id) end
return 1`;

const remove = `${FILES}
if once(ARGV[2]) then files.remove(ARGV[1]) end`;
