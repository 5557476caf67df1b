import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ledger, AssetRow } from '../../ledger/ledger.ts';
import {
  type RecordedBlob,
  copyDatabase,
  inspectDatabase,
  recordedBlobs,
  type DatabaseState,
  type RememberedName,
  assetsOf,
  ledgerIdIn,
  rememberedNames,
} from '../../ledger/sqlite/inspect.ts';
import { databasePath } from '../../data-folder/data-dir.ts';

/** The records of a ledger that stays in use while a backup is made. */
export type BackupRecords = {
  readonly kind: 'sqlite' | 'redis';
  /** The bytes that are on record now. */
  list(): Promise<readonly RecordedBlob[]>;
  /** Puts the records as of one moment into a folder; gives the bytes those name. */
  save(folder: string): Promise<readonly RecordedBlob[]>;
};

/** The database of a data folder; throws when it is not there, or damaged. */
export function sqliteRecords(dataDir: string): BackupRecords {
  const path = databasePath(dataDir);
  refuseUnlessOk(path, 'holdover check says more, holdover restore puts an earlier backup back');
  return {
    kind: 'sqlite',
    list: async () => recordedBlobs(path),
    async save(folder) {
      const copy = databasePath(folder);
      await rm(copy, { force: true });
      copyDatabase(path, copy);
      refuseUnlessOk(copy, 'the copy was not written as it should be');
      return recordedBlobs(copy);
    },
  };
}

/** The records of a Redis ledger stay in Redis and are backed up by its own means. */
export function redisRecords(ledger: Pick<Ledger, 'assets'>): BackupRecords {
  const recorded = recordedInRedis(ledger);
  const list = (): Promise<readonly RecordedBlob[]> => recorded.list();
  return { kind: 'redis', list, save: list };
}

function refuseUnlessOk(path: string, advice: string): void {
  const { state, errors } = inspectDatabase(path);
  if (state === 'ok') return;
  throw new Error(`the ledger ${path} is ${state} (${errors[0]}): ${advice}`);
}

/** Where the bytes of a hash are below a data folder, or a backup of one. */
export function blobPath(hash: string): string {
  const hex = hash.slice('blake3:'.length);
  return join('blobs', hex.slice(0, 2), hex);
}

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
