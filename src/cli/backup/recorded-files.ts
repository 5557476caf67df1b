import type { AssetRow, Ledger } from '../../ledger/ledger.ts';
import {
  type DatabaseState,
  type RecordedBlob,
  type RememberedName,
  assetsOf,
  inspectDatabase,
  ledgerIdIn,
  recordedBlobs,
  rememberedNames,
} from '../../ledger/sqlite/inspect.ts';

/** The files of a data folder as its ledger records them. */
export type RecordedFiles = {
  readonly kind: 'sqlite' | 'redis';
  inspect(): { readonly state: DatabaseState; readonly errors: readonly string[] };
  /** `undefined` of a ledger that was written by an earlier version. */
  id(): string | undefined;
  list(): Promise<readonly RecordedBlob[]>;
  owners(
    hashes: readonly string[],
  ): Promise<readonly Pick<AssetRow, 'user' | 'filePath' | 'hash'>[]>;
  /** Names of bytes whose own record is gone; a Redis cannot be asked for them. */
  remembered(): readonly RememberedName[];
};

export function recordedInDatabase(path: string): RecordedFiles {
  return {
    kind: 'sqlite',
    inspect: () => inspectDatabase(path),
    id: () => ledgerIdIn(path),
    list: async () => recordedBlobs(path),
    owners: async (hashes) => assetsOf(path, hashes),
    remembered: () => rememberedNames(path),
  };
}

export function recordedInRedis({ assets }: Pick<Ledger, 'assets'>, id?: string): RecordedFiles {
  const rows = (): Promise<readonly AssetRow[]> => assets.oldest(Number.MAX_SAFE_INTEGER);
  return {
    kind: 'redis',
    inspect: () => ({ state: 'ok', errors: [] }),
    id: () => id,
    async list() {
      const sizes = new Map((await rows()).map(({ hash, sizeBytes }) => [hash, sizeBytes]));
      return [...sizes].map(([hash, sizeBytes]) => ({ hash, sizeBytes }));
    },
    async owners(hashes) {
      const wanted = new Set(hashes);
      return wanted.size === 0 ? [] : (await rows()).filter(({ hash }) => wanted.has(hash));
    },
    remembered: () => [],
  };
}
