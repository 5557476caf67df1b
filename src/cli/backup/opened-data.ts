import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { openBucketOf } from '../../app/stored-files.ts';
import { filesSource } from '../../config/files.ts';
import { databasePath, refuseOtherPlace } from '../../data-folder/data-dir.ts';
import type { RecordKind, StoredRecord } from '../../ledger/records.ts';
import type { SharedRedis } from '../../ledger/redis/open-shared.ts';
import { readRedisRecords } from '../../ledger/redis/records.ts';
import {
  type InspectedDatabase,
  inspectDatabase,
  ledgerIdIn,
} from '../../ledger/sqlite/inspect.ts';
import { readSqliteRecords } from '../../ledger/sqlite/records.ts';
import { silentLogger } from '../../observability/log.ts';
import type { Blobs } from '../../blobs/blobs.ts';
import { createFolderBlobs } from '../../blobs/folder/folder-blobs.ts';
import { type DataLocation, withRedis } from '../shared-options.ts';
import { withOpen } from '../with-open.ts';
import { type FilesPlace, placeInFolder } from './places.ts';

/** A ledger and its files, in a data folder, Redis and a bucket. A server may use them meanwhile. */
export type OpenedData = {
  readonly dataDir: string;
  /** `undefined`: the ledger is the database in the data folder. */
  readonly redis: SharedRedis | undefined;
  readonly ledger: LedgerRecords;
  readonly place: FilesPlace;
  /** The bytes of uploads and outputs. */
  readonly blobs: Blobs;
  /** False when another ledger recorded the files. Throws when the database cannot be read. */
  readonly belongs: () => Promise<boolean>;
};

/** The records of a ledger. */
export type LedgerRecords = {
  readonly id: () => string;
  readonly inspect: () => InspectedDatabase;
  /** Reads all records as they are now, or those of some kinds. */
  readonly records: (kinds?: readonly RecordKind[]) => AsyncIterable<StoredRecord>;
};

/**
 * Calls `work` with the data of these settings, and closes them afterwards. Throws when there is no data folder, and
 * when the files are in another place, or are not complete there.
 */
export async function withData<T>(
  settings: DataLocation,
  work: (opened: OpenedData) => Promise<T>,
): Promise<T> {
  const { dataDir } = settings;
  if (!existsSync(dataDir)) throw new Error(`there is no data folder ${dataDir}`);
  const files = filesSource(settings, process.env);
  return withRedis(settings, async (redis) =>
    withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
      await refuseOtherPlace(dataDir, bucket?.identity);
      const ledger = ledgerIn(databasePath(dataDir), redis);
      const place = bucket?.objects ?? placeInFolder(dataDir);
      const blobs = bucket?.blobs ?? createFolderBlobs(join(dataDir, 'blobs'));
      const belongs = async (): Promise<boolean> =>
        [undefined, ledger.id()].includes(await place.text('ledger.id'));
      return await work({ dataDir, redis, ledger, place, blobs, belongs });
    }),
  );
}

function ledgerIn(path: string, redis: SharedRedis | undefined): LedgerRecords {
  return {
    id: () => redis?.identity.id ?? ledgerIdIn(path),
    inspect: () => (redis ? { state: 'ok', why: '' } : inspectDatabase(path)),
    records: (kinds) =>
      redis ? readRedisRecords(redis.links, kinds) : readSqliteRecords(path, kinds),
  };
}
