import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ledger, AssetRow } from '../../ledger/ledger.ts';
import type { SharedRedis } from '../../ledger/redis/open-shared.ts';
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

/** Where the bytes of a hash are below a data folder, or a backup of one. */
export function blobPath(hash: string): string {
  const hex = hash.slice('blake3:'.length);
  return join('blobs', hex.slice(0, 2), hex);
}

/** The files of a data folder as its ledger, which may be in use, records them. */
export type RecordedFiles = {
  readonly kind: 'sqlite' | 'redis';
  inspect(): { readonly state: DatabaseState; readonly errors: readonly string[] };
  /** `undefined` of a ledger that was written by an earlier version. */
  id(): string | undefined;
  /** The bytes that are on record now. */
  list(): Promise<readonly RecordedBlob[]>;
  owners(
    hashes: readonly string[],
  ): Promise<readonly Pick<AssetRow, 'user' | 'filePath' | 'hash'>[]>;
  /** Names of bytes whose own record is gone; a Redis cannot be asked for them. */
  remembered(): readonly RememberedName[];
  /** Puts the records as of one moment into a folder; gives the bytes those name. */
  save(folder: string): Promise<readonly RecordedBlob[]>;
};

export function recordedFiles(dataDir: string, redis: SharedRedis | undefined): RecordedFiles {
  return redis ? recordedInRedis(redis.ledger, redis.identity.id) : recordedInDatabase(dataDir);
}

/** False when another ledger recorded the files; those that an earlier version wrote do not say. */
export function isRecordedBy(
  recorded: Pick<RecordedFiles, 'id'>,
  recordedBy: string | undefined,
): boolean {
  const id = recorded.id();
  return id === undefined || recordedBy === undefined || recordedBy === id;
}

function recordedInDatabase(dataDir: string): RecordedFiles {
  const path = databasePath(dataDir);
  return {
    kind: 'sqlite',
    inspect: () => inspectDatabase(path),
    id: () => ledgerIdIn(path),
    list: async () => recordedBlobs(path),
    owners: async (hashes) => assetsOf(path, hashes),
    remembered: () => rememberedNames(path),
    async save(folder) {
      const copy = databasePath(folder);
      await rm(copy, { force: true });
      copyDatabase(path, copy);
      requireSound(copy, 'the copy was not written as it should be');
      return recordedBlobs(copy);
    },
  };
}

/** Throws when a database is not there, or damaged. */
export function requireSound(path: string, advice: string): void {
  const { state, errors } = inspectDatabase(path);
  if (state === 'ok') return;
  throw new Error(`the ledger ${path} is ${state} (${errors[0]}): ${advice}`);
}

/** The records of a Redis ledger stay in Redis and are backed up by its own means. */
function recordedInRedis({ assets }: Pick<Ledger, 'assets'>, id: string): RecordedFiles {
  const rows = (): Promise<readonly AssetRow[]> => assets.oldest(Number.MAX_SAFE_INTEGER);
  const list = async (): Promise<readonly RecordedBlob[]> => {
    const sizes = new Map((await rows()).map(({ hash, sizeBytes }) => [hash, sizeBytes]));
    return [...sizes].map(([hash, sizeBytes]) => ({ hash, sizeBytes }));
  };
  return {
    kind: 'redis',
    inspect: () => ({ state: 'ok', errors: [] }),
    id: () => id,
    list,
    async owners(hashes) {
      const wanted = new Set(hashes);
      return wanted.size === 0 ? [] : (await rows()).filter(({ hash }) => wanted.has(hash));
    },
    remembered: () => [],
    save: list,
  };
}
