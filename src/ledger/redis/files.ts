import { FILE_COLUMNS } from '../columns.ts';
import { LRUCache } from 'lru-cache';
import type { FileRow, FileStore, SettingStore } from '../ledger.ts';
import { type LedgerConnection, idsOf, joinKey } from './connection.ts';
import { createTable, newToken } from './table.ts';

/** A list of files at a version; every change of the list increases the version. */
type CachedList = { readonly version: string | null; readonly rows: readonly FileRow[] };

/** Files in all cached lists of a process together. */
const MAX_CACHED_FILES = 100_000;

/** v1 file names and the assets behind them. */
export function fileStore(connection: LedgerConnection): FileStore {
  const table = createTable<FileRow>(connection, 'file', FILE_COLUMNS);
  const lua = connection.scripts('files', { put, claim, remove });
  const cached = new LRUCache<string, CachedList>({
    maxSize: MAX_CACHED_FILES,
    sizeCalculation: ({ rows }) => rows.length + 1,
  });
  const list: FileStore['list'] = async (user, type) => {
    const name = joinKey(user, type);
    // Read before the list: a change meanwhile is read again next time.
    const version = await connection.read(() =>
      connection.redis.hget(`${connection.prefix}files:versions`, name),
    );
    const cachedList = cached.get(name);
    if (cachedList?.version === version) return cachedList.rows;
    const index = `${connection.prefix}files:list:${name}`;
    const members = await connection.read(() => connection.redis.zrevrange(index, 0, -1));
    const rows = await table.rows(idsOf(members));
    cached.set(name, { version, rows });
    return rows;
  };
  return {
    put: (row) =>
      connection.write(() => lua.put(idOf(row.user, row), newToken(), ...table.fields(row))),
    claim: async (row) =>
      (await connection.ask(() =>
        lua.claim(idOf(row.user, row), newToken(), ...table.fields(row)),
      )) === 1,
    get: (user, name) => table.get(idOf(user, name)),
    byAsset: (user, assetId) => table.first(`files:asset:${joinKey(user, assetId)}`),
    // There is no index of names. The list is cached, so Redis is seldom asked for it.
    newestNamed: async (user, { type, filename }) =>
      (await list(user, type)).find((row) => row.filename === filename),
    list,
    remove: (user, name) => connection.write(() => lua.remove(idOf(user, name), newToken())),
  };
}

/** Front end settings, a hash for each user. */
export function settingStore({
  redis,
  prefix,
  scripts,
  read,
  write,
}: LedgerConnection): SettingStore {
  const lua = scripts('settings', { all: `return call('HGETALL', P .. 'settings:' .. ARGV[1])` });
  return {
    async all(user) {
      const flat = (await read(() => lua.all(user))) as Buffer[];
      const texts = flat.map(String);
      return Object.fromEntries(
        texts.flatMap((id, i) => (i % 2 === 0 ? [[id, texts[i + 1] ?? '']] : [])),
      );
    },
    merge: async (user, settings) => {
      const pairs = Object.entries(settings).flat();
      if (pairs.length > 0) await write(() => redis.hset(`${prefix}settings:${user}`, ...pairs));
    },
  };
}

function idOf(user: string, name: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): string {
  return joinKey(user, joinKey(name.type, joinKey(name.subfolder, name.filename)));
}

/** Also used by the script that removes an asset. */
export const FILES_COMMON = `
local function file(id) return P .. 'file:' .. id end
local function removed(asset) return P .. 'asset-removed:' .. asset end
local function listed(user, type)
  call('HINCRBY', P .. 'files:versions', own(user, type), 1)
  return P .. 'files:list:' .. own(user, type)
end
local function unlist(id)
  local r = call('HMGET', file(id), 'user', 'type', 'assetId', 'seq')
  if not r[1] then return end
  call('ZREM', listed(r[1], r[2]), member(r[4], id))
  call('ZREM', P .. 'files:asset:' .. own(r[1], r[3]), id)
end
local function store(id, token)
  local seq = next()
  set(file(id), 3)
  call('HSET', file(id), 'seq', seq, 'token', token)
  local r = call('HMGET', file(id), 'user', 'type', 'assetId', 'modifiedAtMs')
  if r[3] == '' then return end
  call('ZADD', listed(r[1], r[2]), r[4], member(seq, id))
  call('ZADD', P .. 'files:asset:' .. own(r[1], r[3]), seq, id)
end
`;

const put = `${FILES_COMMON}
unlist(ARGV[1])
call('UNLINK', file(ARGV[1]))
store(ARGV[1], ARGV[2])`;

// A claim that was sent again may arrive after its output was removed: that output gets no name.
const claim = `${FILES_COMMON}
local id, token = ARGV[1], ARGV[2]
if call('EXISTS', file(id)) == 0 then
  store(id, token)
  if call('EXISTS', removed(call('HGET', file(id), 'assetId'))) == 1 then
    unlist(id)
    call('UNLINK', file(id))
    return 1
  end
end
return call('HGET', file(id), 'token') == token and 1 or 0`;

const remove = `${FILES_COMMON}
if not once(ARGV[2]) then return end
unlist(ARGV[1])
call('UNLINK', file(ARGV[1]))`;
