import { randomUUID } from 'node:crypto';
import { lacksDatabase, setAside, setWalAside } from '../data-folder/set-aside.ts';
import { LedgerLacksFiles, newLedgerText } from '../data-folder/bind-ledger.ts';
import { DataDirWatch } from '../data-folder/watch.ts';
import type { Config } from '../config/config.ts';
import type { OpenedBucket } from '../blobs/bucket/open-bucket.ts';
import { type StoredFiles, openBucketOf, watchFiles } from './stored-files.ts';
import {
  type DataDir,
  databasePath,
  makeDataDir,
  openDataDir,
  refuseUnfinishedRestore,
} from '../data-folder/data-dir.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { LedgerIdentity } from '../ledger/identity.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { DamagedLedger, lockDatabase, openSqliteLedger } from '../ledger/sqlite/sqlite-ledger.ts';
import type { RedisConnections } from '../redis/redis.ts';
import { openSpool, openSharedSpool } from '../data-folder/spool-folder.ts';
import type { Logger } from '../observability/log.ts';

/** The ledger and the data directory, of this process alone or shared. */
export type Store = {
  readonly ledger: Ledger;
  /** The data directory. Its `spool` belongs to this process, and was empty when it was opened. */
  readonly dir: DataDir;
  readonly files: StoredFiles;
  /** The connections to the Redis that processes share; `undefined` when this process is alone. */
  readonly links: RedisConnections | undefined;
  /**
   * Makes the ledger write prompts with the write tokens of this process, if other processes exist.
   */
  readonly useWriteTokens: SharedRedis['useWriteTokens'];
  /** The name of this run of the process: it differs from other processes, and after a restart. */
  readonly instance: string;
  /** Resolves when the ledger or the data directory has lost acknowledged data. */
  readonly lost: Promise<Error>;
  /**
   * Throws when the data directory is gone or was replaced: no change may be acknowledged any more.
   */
  checkDataDir(this: void): void;
  close(): Promise<void>;
};

export type StoreOptions = Pick<Config, 'ledger' | 'dataDir' | 'files'> & {
  /** True to set unrecorded files and a damaged ledger aside, instead of refusing to start. */
  readonly startAnew?: boolean;
  /** True to bind a new ledger to existing files, of which it has no records. */
  readonly acceptFiles?: boolean;
};

type OpenStoreOptions = StoreOptions & {
  readonly log: Logger;
  readonly bucket: OpenedBucket | undefined;
};

/** Opens the store as configured. Throws an error that says what to change. */
export async function openStore(options: StoreOptions, log: Logger): Promise<Store> {
  const { ledger: ledgerSource } = options;
  refuseUnfinishedRestore(options.dataDir);
  const bucket = await openBucketOf(options.files, log);
  try {
    if (ledgerSource.kind === 'redis')
      return await openSharedStore(ledgerSource.url, { ...options, log, bucket });
    return await openStoreOfOne({ ...options, log, bucket });
  } catch (error) {
    bucket?.close();
    throw error;
  }
}

async function openStoreOfOne(options: OpenStoreOptions): Promise<Store> {
  const { ledger, dir } = await openOwnStore(options);
  // Opened after the ledger, which may have been refused because another process has the folder.
  openSpool(dir.spool);
  const close = () => ledger.close();
  const alone = { links: undefined, useWriteTokens: () => {}, instance: randomUUID(), lost: [] };
  return watched({ ledger, dir, ...alone, openFiles: [dir.database], close }, options.bucket);
}

type OpenedLedger = Pick<Store, 'ledger' | 'dir' | 'links' | 'useWriteTokens' | 'instance'> & {
  readonly openFiles: readonly string[];
  readonly lost: readonly Promise<Error>[];
  close(): Promise<void>;
};

/** Returns the store of a ledger. Its folder and its files are watched until it is closed. */
function watched(opened: OpenedLedger, bucket: OpenedBucket | undefined): Store {
  const { dir, openFiles, lost, ...more } = opened;
  const files = watchFiles(dir, bucket);
  const folder = new DataDirWatch(dir.root, { openFiles, hasId: dir.bucketId === undefined });
  return {
    ...more,
    dir,
    files,
    lost: Promise.race([...lost, folder.lost, files.lost]),
    checkDataDir: () => folder.check(),
    async close() {
      folder.close();
      await opened.close();
      files.close();
    },
  };
}

type OwnStore = { readonly ledger: Ledger; readonly dir: DataDir };

async function openOwnStore(options: OpenStoreOptions): Promise<OwnStore> {
  try {
    return await openDatabase(options);
  } catch (error) {
    const isRecoverable = error instanceof LedgerLacksFiles || error instanceof DamagedLedger;
    if (options.startAnew !== true || !isRecoverable || options.bucket) throw error;
    const unlock = lockDatabase(databasePath(options.dataDir));
    setFilesAside(options);
    unlock();
    return await openDatabase(options);
  }
}

async function openDatabase(options: OpenStoreOptions): Promise<OwnStore> {
  const { dataDir, acceptFiles } = options;
  makeDataDir(dataDir);
  // Checked before SQLite opens the folder: without a database, SQLite deletes the log of the
  // earlier one.
  if (lacksDatabase(dataDir)) {
    if (!acceptFiles) throw new LedgerLacksFiles(newLedgerText(dataDir, 'folder'));
    setWalAside(dataDir, new Date());
  }
  const ledger = openSqliteLedger({ path: databasePath(dataDir) });
  try {
    return { ledger, dir: await openDir(options, ledger.identity) };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

function openDir(
  { dataDir, acceptFiles = false, bucket }: OpenStoreOptions,
  identity: LedgerIdentity,
): Promise<DataDir> {
  return openDataDir(dataDir, identity, { acceptFiles, bucket: bucket?.identity });
}

function setFilesAside({ dataDir, log }: OpenStoreOptions): void {
  const folder = setAside(dataDir, new Date());
  log.warn(
    { event: 'data_dir.set_aside', folder },
    'the ledger is new: the files of the earlier one are set aside',
  );
}

async function openSharedStore(url: string, options: OpenStoreOptions): Promise<Store> {
  const { log } = options;
  const instance = randomUUID();
  // Imported on demand: a process with its own ledger starts sooner without the Redis client.
  const { openSharedRedis } = await import('../ledger/redis/open-shared.ts');
  const redis = await openSharedRedis({ url, log });
  try {
    const sharedDir = await openSharedDir(redis, options);
    const spool = openSharedSpool(sharedDir.spool, instance);
    const { ledger, links, useWriteTokens, lost } = redis;
    const close = async (): Promise<void> => {
      spool.close();
      await redis.close();
    };
    const dir = { ...sharedDir, spool: spool.path };
    const shared = { links, useWriteTokens, instance, lost: [lost], openFiles: [] };
    return watched({ ledger, dir, ...shared, close }, options.bucket);
  } catch (error) {
    await redis.close();
    throw error;
  }
}

async function openSharedDir(
  { identity, withStartLock: exclusively }: SharedRedis,
  options: OpenStoreOptions,
) {
  const open = () => openDir(options, identity);
  if (options.startAnew !== true || options.bucket) return open();
  // One of several processes moves the files. The others then find a folder of this ledger.
  return exclusively(async () => {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof LedgerLacksFiles)) throw error;
      setFilesAside(options);
      return await open();
    }
  });
}
