import { readFile, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { FileRow, FileStore, SettingStore } from '../../../src/ledger/ledger.ts';
import { type JobApi, type Result, ok, refuse } from '../../../src/protocol/job-api.ts';
import type { Asset } from '../../../src/protocol/v2.ts';

/** The methods of the v2 API that the file routes call. */
export type AssetApi = Pick<
  JobApi,
  'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset' | 'content'
>;

type Held = { readonly user: string; readonly asset: Asset; readonly bytes: Buffer };

/** Assets in memory; `calls` tells which methods were used, `lose` makes an asset disappear. */
export type FakeAssets = AssetApi & {
  readonly calls: string[];
  readonly held: Map<string, Held>;
  put(user: string, bytes: Buffer, hash: string | null): Asset;
  lose(assetId: string): void;
};

export function fakeAssets(): FakeAssets {
  const held = new Map<string, Held>();
  const calls: string[] = [];
  const gone = <T>(): Result<T> => refuse(404, 'not_found', 'no such asset');
  const mine = (user: string, id: string): Held | undefined => {
    const found = held.get(id);
    return found?.user === user ? found : undefined;
  };
  const put: FakeAssets['put'] = (user, bytes, hash) => {
    const id = `asset-${held.size + 1}`;
    const asset: Asset = {
      id,
      hash,
      size_bytes: bytes.length,
      content_type: 'application/octet-stream',
      created_at: '2026-01-01T00:00:00Z',
      url: `/api/v2/assets/${id}/content`,
      url_expires_at: '2026-01-02T00:00:00Z',
    };
    held.set(id, { user, asset, bytes });
    return asset;
  };
  const sameBytes = (user: string, hash: string): Held | undefined =>
    [...held.values()].find((one) => one.user === user && one.asset.hash === hash);
  return {
    calls,
    held,
    put,
    lose: (assetId) => void held.delete(assetId),
    async createAsset({ user }, { file }) {
      calls.push('createAsset');
      const bytes = await readFile(file.path);
      await rm(file.path);
      return ok(put(user, bytes, file.hash));
    },
    async assetFromHash({ user }, { hash }) {
      calls.push('assetFromHash');
      const known = sameBytes(user, hash);
      return known ? ok(put(user, known.bytes, hash)) : gone();
    },
    async hasBlob({ user }, hash) {
      return ok(sameBytes(user, hash) !== undefined);
    },
    async asset({ user }, id) {
      const found = mine(user, id);
      return found ? ok(found.asset) : gone();
    },
    async deleteAsset({ user }, id) {
      calls.push('deleteAsset');
      return mine(user, id) && held.delete(id) ? ok(null) : gone();
    },
    async content({ user }, id, range) {
      calls.push('content');
      const found = mine(user, id);
      if (!found) return gone();
      const { bytes } = found;
      const part = range ? bytes.subarray(range.start, range.end + 1) : bytes;
      return ok({
        kind: 'bytes',
        stream: Readable.from(part.length > 0 ? [part] : []),
        contentType: 'application/octet-stream',
        totalBytes: bytes.length,
        ...(range && { range }),
      });
    },
  };
}

/** The name table in memory. */
export function fakeFiles(): FileStore {
  const rows = new Map<string, FileRow>();
  const keyOf = (user: string, row: Pick<FileRow, 'type' | 'subfolder' | 'filename'>): string =>
    JSON.stringify([user, row.type, row.subfolder, row.filename]);
  return {
    async put(row) {
      rows.delete(keyOf(row.user, row));
      rows.set(keyOf(row.user, row), row);
    },
    async claim(row) {
      const key = keyOf(row.user, row);
      if (rows.has(key)) return false;
      rows.set(key, row);
      return true;
    },
    async get(user, name) {
      return rows.get(keyOf(user, name));
    },
    async byAsset(user, assetId) {
      return [...rows.values()].find((row) => row.user === user && row.assetId === assetId);
    },
    async list(user, type) {
      return [...rows.values()]
        .filter((row) => row.user === user && row.type === type)
        .toReversed();
    },
    async remove(user, name) {
      rows.delete(keyOf(user, name));
    },
  };
}

/** Settings in memory. */
export function fakeSettings(): SettingStore {
  const users = new Map<string, { [id: string]: string }>();
  return {
    async all(user) {
      return users.get(user) ?? {};
    },
    async merge(user, settings) {
      users.set(user, { ...users.get(user), ...settings });
    },
  };
}
