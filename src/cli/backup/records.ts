import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ledger } from '../../ledger/ledger.ts';
import {
  type RecordedBlob,
  copyDatabase,
  inspectDatabase,
  recordedBlobs,
} from '../../ledger/sqlite/inspect.ts';
import { databasePath } from '../../data-folder/data-dir.ts';
import { recordedInRedis } from './recorded-files.ts';

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
