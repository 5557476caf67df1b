import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { type RestoredRecord, recordOrphans } from './backup/record-orphans.ts';
import { type CheckReport, check, isSound, type Orphan, type DamagedFile } from './backup/check.ts';
import { refuseSharedUse } from '../data-folder/spool-folder.ts';
import { inUseText, tryLock } from './backup/copy.ts';
import { type RecordedFiles, recordedFiles } from './backup/recorded-files.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { openStore } from '../app/store.ts';
import { silentLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { addServerOptions } from '../config/flags.ts';
import { type FilesLocation, withFiles } from './backup/with-files.ts';
import { type DataLocation, runCommand, withRedis } from './shared-options.ts';
import { megabytes, printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

type Settings = DataLocation & {
  readonly repair?: boolean;
  readonly user: string;
  readonly json?: boolean;
};

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
    .option('--user <ID>', 'whose they are when no trace of that is left', LOCAL_USER)
    .option('--json', 'for programs');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const { json = false } = settings;
  const dataDir = resolve(settings.dataDir);
  if (!existsSync(dataDir)) throw new Error(`there is no data folder ${dataDir}`);
  const location = { dataDir, files: filesSource(settings, process.env) };
  return withRedis(settings, async (redis) => {
    const recorded = recordedFiles(dataDir, redis);
    const checkNow = (): Promise<CheckReport> => runCheck(location, recorded, redis);
    let restored: readonly RestoredRecord[] = [];
    if (settings.repair === true) {
      await refuseUse(dataDir, redis);
      restored = await repair(settings, await checkNow(), recorded);
    }
    const report = await checkNow();
    const sound = isSound(report);
    process.stdout.write(
      json
        ? `${JSON.stringify({ ok: sound, ...report, adopted: restored }, null, 2)}\n`
        : checkText({ ...report, restored, sound }),
    );
    return sound ? 0 : 1;
  });
}

async function runCheck(
  location: FilesLocation,
  recorded: RecordedFiles,
  redis: SharedRedis | undefined,
): Promise<CheckReport> {
  const { dataDir } = location;
  const progress = createProgress();
  const inUse = redis !== undefined || isInUse(dataDir);
  return withFiles(location, ({ blobs, recordedBy }) =>
    check({
      dataDir,
      blobs,
      recordedBy,
      recorded,
      inUse,
      now: Date.now,
      progress: progress.start,
    }),
  ).finally(progress.stop);
}

/**
 * Records the files that have no record, and returns the new records. Creates an absent ledger, and binds a ledger of
 * other files to these files.
 */
async function repair(
  settings: Settings,
  { ledger: { state }, belongs, orphans }: CheckReport,
  recorded: RecordedFiles,
): Promise<readonly RestoredRecord[]> {
  const ledgerIsMissing = state === 'absent' || state === 'empty';
  const canRepair = orphans.some(({ whole }) => whole) || ledgerIsMissing || !belongs;
  if (state === 'damaged' || !canRepair) return [];
  const acceptFiles = ledgerIsMissing || !belongs;
  const remembered = state === 'ok' ? recorded.remembered() : [];
  const source = ledgerSource(settings.ledger);
  const { dataDir, user } = settings;
  const files = filesSource(settings, process.env);
  const store = await openStore({ ledger: source, dataDir, files, acceptFiles }, silentLogger());
  try {
    const { ledger } = store;
    return await recordOrphans(
      { blobs: store.files.blobs, ledger, user, now: Date.now },
      orphans,
      remembered,
    );
  } finally {
    await store.close();
  }
}

async function refuseUse(dataDir: string, redis: SharedRedis | undefined): Promise<void> {
  if (redis) {
    const { refuseRedisInUse } = await import('../ledger/redis/records.ts');
    return await refuseRedisInUse(redis.links);
  }
  // Servers with a ledger in Redis may use this folder, even when no --ledger is given here.
  refuseSharedUse(dataDir, Date.now());
  if (isInUse(dataDir)) throw new Error(inUseText(dataDir));
}

function isInUse(dataDir: string): boolean {
  if (!existsSync(join(dataDir, 'holdover.db.lock'))) return false;
  const lock = tryLock(databasePath(dataDir));
  lock?.close();
  return lock === undefined;
}

type ShownReport = CheckReport & {
  readonly restored: readonly RestoredRecord[];
  readonly sound: boolean;
};

/** Returns the report as text. It lists every file that has a problem. */
function checkText(report: ShownReport): string {
  const { dataDir, recorded, trouble, orphans, restored, sound } = report;
  const lines = [
    `Data folder ${printableName(dataDir)}`,
    ...ledgerLines(report),
    ...(report.belongs ? [] : [OTHER_LEDGER]),
    ...secretLines(report),
    ...(report.unfinishedRestore ? [UNFINISHED_RESTORE_TEXT] : []),
    ...(recorded === null
      ? ['Files were not compared: the ledger cannot be read.']
      : [`Files on record: ${recorded.files} (${megabytes(recorded.bytes)}).`]),
    ...listed('Files on record that are missing, damaged or unreadable', trouble.map(troubleLine)),
    ...(trouble.length > 0 ? [BACKUP_ADVICE] : []),
    ...listed('Put on record again', restored.map(restoredLine)),
    ...listed('Files without a record', orphans.map(orphanLine)),
    ...(orphans.some(({ whole }) => whole) ? [REPAIR_ADVICE] : []),
    sound ? 'Everything is as it should be.' : 'Something is wrong.',
  ];
  return `${lines.join('\n')}\n`;
}

const UNFINISHED_RESTORE_TEXT =
  'A restore was interrupted while it moved files: run holdover restore with --replace.';
const OTHER_LEDGER =
  'The files were recorded by another ledger: give the --ledger of their servers, restore that ledger, or use ' +
  '--repair to bind this one to them.';
const BACKUP_ADVICE =
  'A backup may have them: it has the same folder blobs, so that single files can be copied back.';
const REPAIR_ADVICE =
  'holdover check --repair puts them on record again: under their names if the ledger still has those, ' +
  'otherwise in the folder "recovered" of the outputs.';

function ledgerLines({ ledger: { kind, state, errors } }: CheckReport): readonly string[] {
  if (kind === 'redis') return ['Ledger: in Redis.'];
  if (state === 'ok') return ['Database: sound.'];
  return [
    `Database: ${state}.`,
    ...errors.map((error) => `  ${printableName(error)}`),
    ADVICE[state],
  ];
}

const ABSENT = 'Give the --ledger of the servers, or restore a backup with holdover restore.';
const ADVICE = {
  absent: ABSENT,
  empty: ABSENT,
  damaged: 'Restore a backup with holdover restore: a damaged database cannot be repaired.',
} as const;

function secretLines({ secret }: CheckReport): readonly string[] {
  if (secret === 'ok' || secret === 'elsewhere') return [];
  return [`secret.key is ${secret}: without it every user with a key is a new user.`];
}

function listed(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`${title}: ${lines.length}`, ...lines];
}

function troubleLine({ path, why, names }: DamagedFile): string {
  const whose = names.map(
    ({ user, filePath }) => `${printableName(filePath)} of ${printableName(user)}`,
  );
  return `  ${why}: ${path} (${whose.join(', ')})`;
}

function orphanLine({ path, sizeBytes, whole }: Orphan): string {
  return `  ${path} (${megabytes(sizeBytes)}${whole ? '' : ', damaged'})`;
}

function restoredLine({ hash, user, filePath, as }: RestoredRecord): string {
  const how = as === 'remembered' ? '' : ', its own name is not known';
  return `  ${printableName(filePath)} of ${printableName(user)} (${hash}${how})`;
}
