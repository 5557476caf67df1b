import { existsSync } from 'node:fs';
import { resolve, posix } from 'node:path';
import { Command } from 'commander';
import { type CheckReport, check } from './backup/check.ts';
import { type OpenedData, withData } from './backup/opened-data.ts';
import { refuseSharedUse } from '../data-folder/spool-folder.ts';
import { filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import { refuseRedisInUse } from '../ledger/redis/records.ts';
import { lockDatabase } from '../ledger/sqlite/sqlite-ledger.ts';
import { type Store, openStore } from '../app/store.ts';
import { silentLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { addServerOptions } from '../config/flags.ts';
import { withOpen } from './with-open.ts';
import { DATA_FLAGS, type DataLocation, runCommand } from './shared-options.ts';
import { megabytes, printLines } from './printable-name.ts';
import { randomUUID } from 'node:crypto';
import { readAtMost } from '../lib/read-at-most.ts';
import type { Blobs, StoredBlob } from '../blobs/blobs.ts';
import { importedAsset } from '../engine/imported-asset.ts';
import type { AssetRow } from '../ledger/ledger.ts';
import { pictureFormatOf } from '../nodes/decoders.ts';

type Settings = DataLocation & { readonly repair?: boolean; readonly user: string };

/**
 * `holdover check`: checks that every file on record exists and is undamaged. Resolves with the exit code: 1 when
 * there is a problem.
 */
export function checkCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover check')
    .description(
      'Checks the database, reads every file on record, and lists files that no record names. ' +
        'Changes nothing without --repair; the server may run meanwhile.',
    )
    .option('--repair', 'put files without a record on record again; stop the server first')
    .option('--user <ID>', 'whose they are then', LOCAL_USER);
  return runCommand(addServerOptions(command, DATA_FLAGS), argv, run);
}

async function run(command: Command): Promise<number> {
  const options = command.opts<Settings>();
  const settings = { ...options, dataDir: resolve(options.dataDir) };
  return withData(settings, async (opened) => {
    const inUse = opened.redis !== undefined || isInUse(opened.dataDir);
    let adopted: readonly NewRecord[] = [];
    if (settings.repair === true) {
      await refuseUse(opened);
      adopted = await repair(settings, await check(opened, { inUse }));
    }
    const { problems, recorded } = await check(opened, { inUse });
    printLines([
      `Data folder ${opened.dataDir}: ${recorded.files} files on record (${megabytes(recorded.bytes)}).`,
      ...adopted.map(({ hash, user, filePath }) => `${hash} is now ${filePath} of ${user}`),
      ...problems,
      problems.length === 0 ? 'Everything is as it should be.' : 'Something is wrong.',
    ]);
    return problems.length === 0 ? 0 : 1;
  });
}

/**
 * Records the files that have no record, and returns the new records. Creates an absent ledger, and binds a ledger of
 * other files to these files.
 */
async function repair(
  settings: Settings,
  { orphans, acceptFiles }: CheckReport,
): Promise<readonly NewRecord[]> {
  if (!acceptFiles && orphans.length === 0) return [];
  const { dataDir, user } = settings;
  const files = filesSource(settings, process.env);
  const ledger = ledgerSource(settings.ledger);
  return withOpen(
    await openStore({ ledger, dataDir, files, acceptFiles }, silentLogger()),
    (store) => recordOrphans(store, user, orphans),
  );
}

async function refuseUse({ dataDir, redis }: OpenedData): Promise<void> {
  if (redis) return await refuseRedisInUse(redis.links);
  // Servers with a ledger in Redis may use this folder, even when no --ledger is given here.
  refuseSharedUse(dataDir, Date.now());
  lockDatabase(databasePath(dataDir))();
}

function isInUse(dataDir: string): boolean {
  if (!existsSync(`${databasePath(dataDir)}.lock`)) return false;
  try {
    lockDatabase(databasePath(dataDir))();
    return false;
  } catch {
    return true;
  }
}

/** The record that a file without one was given. */
type NewRecord = Pick<AssetRow, 'hash' | 'user' | 'filePath'>;

const HEAD_BYTES = 16;
const UNKNOWN = ['.bin', 'application/octet-stream'] as const;

/** Records undamaged files that have no record in the ledger, as outputs of a user with new names. */
async function recordOrphans(
  { ledger, files: { blobs } }: Store,
  user: string,
  orphans: readonly StoredBlob[],
): Promise<readonly NewRecord[]> {
  const recorded: NewRecord[] = [];
  for (const { hash, sizeBytes, modifiedAtMs } of orphans) {
    const [extension, contentType] = sizeBytes === 0 ? UNKNOWN : await detectType(blobs, hash);
    const filename = `${hash.slice('blake3:'.length, 'blake3:'.length + 16)}${extension}`;
    const [type, subfolder] = ['output', 'recovered'] as const;
    const filePath = posix.join(type, subfolder, filename);
    const [id, file] = [randomUUID(), { user, hash, sizeBytes, contentType }];
    const name = { type, subfolder, filename, modifiedAtMs: Math.round(modifiedAtMs) };
    await Promise.all([
      ledger.assets.insert(importedAsset({ ...file, id, filePath, createdAtMs: Date.now() })),
      ledger.files.put({ ...file, ...name, assetId: id }),
    ]);
    recorded.push({ hash, user, filePath });
  }
  return recorded;
}

/** Recognises pictures by their first bytes. */
async function detectType(blobs: Blobs, hash: string): Promise<readonly [string, string]> {
  const stream = await blobs.open(hash, { start: 0, end: HEAD_BYTES - 1 });
  const head = stream && (await readAtMost(HEAD_BYTES, stream));
  const format = head && pictureFormatOf(head);
  return format ? [`.${format}`, `image/${format}`] : UNKNOWN;
}
