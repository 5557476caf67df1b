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

/** Settings a command shares with the server whose data it is about. */
export type DataLocation = Pick<Flags, 'dataDir' | 'ledger' | (typeof FILES_FLAGS)[number]>;

/** Parses and runs; gives the exit code: 2 is for what cannot be meant, 1 for what went wrong. */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  run: (command: Command) => Promise<number>,
  /** How a message is made fit for a terminal. */
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

/** Works with the Redis of these settings; `undefined` is given when the ledger is a database. */
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

/** The stored bytes of these settings, and the ledger that recorded them as far as they tell. */
export type OpenedFiles = {
  readonly blobs: Blobs;
  readonly recordedBy: string | undefined;
  /** `undefined`: the bytes are in the data directory. */
  readonly bucket: OpenedBucket | undefined;
};

/** Works with the stored bytes of these settings. */
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
