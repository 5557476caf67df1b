import type { Ledger, AssetRow } from '../../ledger/ledger.ts';
import type { SharedRedis } from '../../ledger/redis/open-shared.ts';
import {
  type RecordedBlob,
  inspectDatabase,
  recordedBlobs,
  type DatabaseState,
  type RememberedName,
  assetsOf,
  ledgerIdIn,
  rememberedNames,
} from '../../ledger/sqlite/inspect.ts';
import { databasePath } from '../../data-folder/data-dir.ts';

/** The records of the files in a data folder. A server may use the ledger meanwhile. */
export type RecordedFiles = {
  readonly kind: 'sqlite' | 'redis';
  inspect(): { readonly state: DatabaseState; readonly errors: readonly string[] };
  /** Returns the id of the ledger; `undefined` when an earlier version wrote the ledger. */
  id(): string | undefined;
  /** Returns the files that are on record now. */
  list(): Promise<readonly RecordedBlob[]>;
  owners(
    hashes: readonly string[],
  ): Promise<readonly Pick<AssetRow, 'user' | 'filePath' | 'hash'>[]>;
  /** Returns names that other records have for files whose own record is gone. Returns none with Redis. */
  remembered(): readonly RememberedName[];
};

/** Returns the records of a ledger: that in Redis if it is given, otherwise the database in the data folder. */
export function recordedFiles(dataDir: string, redis: SharedRedis | undefined): RecordedFiles {
  return redis ? recordedInRedis(redis.ledger, redis.identity.id) : recordedInDatabase(dataDir);
}

/** Returns false when another ledger recorded the files. Returns true when an earlier version stored no id. */
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
  };
}

/** Throws when a database is absent or damaged. */
export function requireSound(path: string): void {
  const { state, errors } = inspectDatabase(path);
  if (state === 'ok') return;
  throw new Error(
    `the ledger ${path} is ${state} (${errors[0]}): run holdover check to see the damage, or holdover restore to ` +
      'restore a backup',
  );
}

function recordedInRedis({ assets }: Pick<Ledger, 'assets'>, id: string): RecordedFiles {
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
