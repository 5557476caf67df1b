import { packageUrl } from '../lib/package-url.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { JobApi } from '../wire/jobs.ts';
import { type AssetDeps, type Assets, createAssets } from './assets.ts';
import type { Blobs } from './blobs.ts';
import { type Holds, createHolds } from './holds.ts';
import { type Locks, createLocks } from './locks.ts';
import { type Names, type OutputDeps, type Outputs, createOutputs } from './outputs.ts';
import type { ResolveDeps } from './resolve.ts';

export type StoreDeps = Pick<AssetDeps, 'isRead'> &
  Pick<OutputDeps, 'alsoUsed'> & {
    readonly ledger: Ledger;
    readonly nodes: ReadonlyMap<string, NodeDef>;
    readonly blobs: Blobs;
    readonly names: Names;
    readonly retentionMs: number;
    readonly clock: () => number;
  };

/** What jobs read and make: files, their names, and how long they are kept. */
export type Stores = {
  readonly locks: Locks;
  readonly blobs: Blobs;
  readonly assets: Assets;
  readonly outputs: Outputs;
  readonly holds: Holds;
  readonly filesOf: (user: string) => ResolveDeps;
};

export function openStores(deps: StoreDeps): Stores {
  const { ledger, blobs, nodes } = deps;
  const locks = createLocks();
  const assets = createAssets({ ...deps, locks });
  return {
    locks,
    blobs,
    assets,
    outputs: createOutputs({ ...deps, locks }),
    holds: createHolds({ ...deps, ledger, locks }),
    filesOf: (user) => ({
      nodes,
      byId: (id) => assets.find(user, id),
      byPath: (filePath) => assets.findByPath(user, filePath),
      pathOf: blobs.pathOf,
    }),
  };
}

type AssetHalf = Pick<
  JobApi,
  'createAsset' | 'assetFromHash' | 'hasBlob' | 'asset' | 'deleteAsset' | 'content'
>;

/** The half of the port that is about files. */
export function createAssetApi(assets: Assets): AssetHalf {
  return {
    createAsset: ({ user }, upload) => assets.create(user, upload),
    assetFromHash: ({ user }, request) => assets.fromHash(user, request),
    hasBlob: ({ user }, hash) => assets.hasBlob(user, hash),
    asset: ({ user }, id) => assets.get(user, id),
    deleteAsset: ({ user }, id) => assets.remove(user, id),
    content: ({ user }, id, range) => assets.content(user, id, range),
  };
}

/** The library as threads load it. */
export function libraryUrl(): string {
  return packageUrl('dist/nodes/library.js').href;
}
