import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import { openBucketOf } from '../app/stored-files.ts';
import { type FILES_FLAGS, filesSource } from '../config/files.ts';
import { type LedgerSource, ledgerSource } from '../config/ledger.ts';
import type { Flags } from '../config/flags.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { idsOfFolder } from '../data-folder/bind-ledger.ts';
import { refuseOtherPlace } from '../data-folder/data-dir.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { silentLogger } from '../observability/log.ts';
import type { Blobs } from '../upstreams/blobs.ts';
import type { OpenedBucket } from '../upstreams/bucket/open-bucket.ts';
import { createFolderBlobs } from '../upstreams/folder/folder-blobs.ts';
import { printableName } from './printable-name.ts';

/** The settings by which a command finds the data of a server. */
export type DataLocation = Pick<Flags, 'dataDir' | 'ledger' | (typeof FILES_FLAGS)[number]>;

/** Parses the arguments and runs the command. Returns the exit code: 2 for invalid arguments, 1 for any other error. */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  run: (command: Command) => Promise<number>,
  /** Makes an error message safe to print on a terminal. */
  shown: (message: string) => string = printableName,
): Promise<number> {
  try {
    command.exitOverride().parse([...argv], { from: 'user' });
    return await run(command);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(
      `error: ${shown(error instanceof Error ? error.message : String(error))}\n`,
    );
    return error instanceof InvalidSetting ? 2 : 1;
  }
}

/**
 * Calls `work` with the Redis of these settings, or with `undefined` when the ledger is SQLite. Closes it afterwards.
 */
export async function withRedis<T>(
  { ledger }: Pick<DataLocation, 'ledger'>,
  work: (redis: SharedRedis | undefined) => Promise<T>,
): Promise<T> {
  const source: LedgerSource = ledgerSource(ledger);
  if (source.kind === 'sqlite') return work(undefined);
  const { openSharedRedis } = await import('../ledger/redis/open-shared.ts');
  const redis = await openSharedRedis({ url: source.url, log: silentLogger() });
  try {
    return await work(redis);
  } finally {
    await redis.close();
  }
}

/** The stored files, and the id of the ledger that recorded them, if it is known. */
export type OpenedFiles = {
  readonly blobs: Blobs;
  readonly recordedBy: string | undefined;
  /** `undefined` when the files are in the data directory. */
  readonly bucket: OpenedBucket | undefined;
};

/** Calls `work` with the stored files of these settings. Closes them afterwards. */
export async function withFiles<T>(
  location: Omit<DataLocation, 'ledger'>,
  work: (files: OpenedFiles) => Promise<T>,
): Promise<T> {
  const { dataDir } = location;
  const bucket = await openBucketOf(filesSource(location, process.env), silentLogger());
  try {
    await refuseOtherPlace(dataDir, bucket?.identity);
    const blobs = bucket?.blobs ?? createFolderBlobs(join(dataDir, 'blobs'));
    const recordedBy = bucket
      ? await bucket.identity.readId('ledger.id')
      : idsOfFolder(dataDir).ledgerId;
    return await work({ blobs, recordedBy, bucket });
  } finally {
    await bucket?.close();
  }
}
