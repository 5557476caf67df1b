import { CLAIMED_ASSET_COLUMNS } from '../columns.ts';
import type { ClaimedAsset, KeyStore } from '../ledger.ts';
import { type LedgerConnection, joinKey } from './connection.ts';
import { type Table, createTable } from './table.ts';

/** Single-use idempotency keys, of jobs and of assets. */
export function keyStore(connection: LedgerConnection): KeyStore {
  const lua = connection.scripts('keys', { expire });
  const table = assetKeyTable(connection);
  return {
    ofAsset: (user, key) => table.get(joinKey(user, key)),
    expire: (beforeMs) => connection.write(() => lua.expire(beforeMs)),
  };
}

/** The keys of assets. */
export function assetKeyTable(connection: LedgerConnection): Table<ClaimedAsset> {
  return createTable<ClaimedAsset>(connection, 'asset-key', CLAIMED_ASSET_COLUMNS);
}

const expire = `
for index, key in pairs({['keys:age'] = 'key:', ['asset-keys:age'] = 'asset-key:'}) do
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. index, '-inf', '(' .. ARGV[1])) do
    call('UNLINK', P .. key .. id)
    call('ZREM', P .. index, id)
  end
end`;
