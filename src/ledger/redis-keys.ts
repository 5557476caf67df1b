import type { ClaimedAsset, KeyStore } from './ledger.ts';
import { type Link, own } from './redis-link.ts';
import { type Columns, type Table, createTable } from './redis-table.ts';

const COLUMNS: Columns<ClaimedAsset> = {
  assetId: 'text',
  fingerprint: 'text',
  createdNew: 'flag',
  claimedAtMs: 'number',
};

/** Single-use idempotency keys, of jobs and of assets. */
export function keyStore(link: Link): KeyStore {
  const lua = link.scripts('keys', { expire });
  const table = claimedAssets(link);
  return {
    ofAsset: (user, key) => table.get(own(user, key)),
    expire: (beforeMs) => link.write(() => lua.expire(beforeMs)),
  };
}

/** The keys of assets. */
export function claimedAssets(link: Link): Table<ClaimedAsset> {
  return createTable<ClaimedAsset>(link, 'asset-key', COLUMNS);
}

const expire = `
for index, key in pairs({['keys:age'] = 'key:', ['asset-keys:age'] = 'asset-key:'}) do
  for _, id in ipairs(call('ZRANGEBYSCORE', P .. index, '-inf', '(' .. ARGV[1])) do
    call('UNLINK', P .. key .. id)
    call('ZREM', P .. index, id)
  end
end`;
