import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { type NewRecord, recordOrphans } from './backup/record-orphans.ts';
import { type CheckReport, check, isSound, type Orphan, type DamagedFile } from './backup/check.ts';
import { type OpenedData, withData } from './backup/opened-data.ts';
import { refuseSharedUse } from '../data-folder/spool-folder.ts';
import { inUseText, tryLock } from './backup/copy.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import { openStore } from '../app/store.ts';
import { silentLogger } from '../observability/log.ts';
import { LOCAL_USER } from '../auth/identity.ts';
import { addServerOptions } from '../config/flags.ts';
import { withOpen } from './with-open.ts';
import { type DataLocation, runCommand } from './shared-options.ts';
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
    .option('--user <ID>', 'whose they are then', LOCAL_USER)
    .option('--json', 'for programs');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const dataDir = resolve(settings.dataDir);
  if (!existsSync(dataDir)) throw new Error(`there is no data folder ${dataDir}`);
  return withData({ ...settings, dataDir }, async (opened) => {
    let adopted: readonly NewRecord[] = [];
    if (settings.repair === true) {
      await refuseUse(opened);
      adopted = await repair(settings, await runCheck(opened));
    }
    const report = await runCheck(opened);
    const ok = isSound(report);
    process.stdout.write(
      settings.json === true
        ? `${JSON.stringify({ ok, ...report, adopted }, null, 2)}\n`
        : checkText({ ...report, ok, adopted }),
    );
    return ok ? 0 : 1;
  });
}

function runCheck(opened: OpenedData): Promise<CheckReport> {
  const progress = createProgress();
  const inUse = opened.redis !== undefined || isInUse(opened.dataDir);
  const options = { ...opened, inUse, now: Date.now, progress: progress.start };
  return check(options).finally(progress.stop);
}

/**
 * Records the files that have no record, and returns the new records. Creates an absent ledger, and binds a ledger of
 * other files to these files.
 */
async function repair(
  settings: Settings,
  { ledger: { state }, belongs, orphans }: CheckReport,
): Promise<readonly NewRecord[]> {
  const acceptFiles = state === 'absent' || state === 'empty' || !belongs;
  if (state === 'damaged' || !(acceptFiles || orphans.some(({ whole }) => whole))) return [];
  const { dataDir, user } = settings;
  const files = filesSource(settings, process.env);
  const ledger = ledgerSource(settings.ledger);
  return withOpen(
    await openStore({ ledger, dataDir, files, acceptFiles }, silentLogger()),
    async (store) => {
      const { blobs } = store.files;
      return recordOrphans({ blobs, ledger: store.ledger, user, now: Date.now }, orphans);
    },
  );
}

async function refuseUse({ dataDir, redis }: OpenedData): Promise<void> {
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
  readonly ok: boolean;
  readonly adopted: readonly NewRecord[];
};

/** Returns the report as text. It lists every file that has a problem. */
function checkText(report: ShownReport): string {
  const { dataDir, recorded, trouble, orphans, adopted } = report;
  const lines = [
    `Data folder ${printableName(dataDir)}`,
    ...ledgerLines(report),
    ...secretLines(report),
    ...(report.unfinishedRestore ? [UNFINISHED_RESTORE_TEXT] : []),
    recorded === null
      ? 'Files were not compared: the ledger cannot be read.'
      : `Files on record: ${recorded.files} (${megabytes(recorded.bytes)}).`,
    ...listed('Files on record that are missing, damaged or unreadable', trouble.map(troubleLine)),
    ...(trouble.length > 0 ? [BACKUP_ADVICE] : []),
    ...listed('Put on record again', adopted.map(adoptedLine)),
    ...listed('Files without a record', orphans.map(orphanLine)),
    ...(orphans.some(({ whole }) => whole) ? [REPAIR_ADVICE] : []),
    report.ok ? 'Everything is as it should be.' : 'Something is wrong.',
  ];
  return `${lines.join('\n')}\n`;
}

const UNFINISHED_RESTORE_TEXT = 'A restore was interrupted: run holdover restore again.';
const OTHER_LEDGER =
  'The files were recorded by another ledger: give the --ledger of their servers, restore that ledger, or use ' +
  '--repair to bind this one to them.';
const LEDGER_ADVICE =
  'Restore a backup with holdover restore, or give the --ledger of the servers.';
const BACKUP_ADVICE =
  'A backup may have them: it has the same folder blobs, so that single files can be copied back.';
const REPAIR_ADVICE =
  'holdover check --repair puts them on record again, in the folder "recovered" of the outputs.';

function ledgerLines({ ledger: { kind, state, errors }, belongs }: CheckReport): readonly string[] {
  const whose = belongs ? [] : [OTHER_LEDGER];
  if (kind === 'redis') return ['Ledger: in Redis.', ...whose];
  if (state === 'ok') return ['Database: sound.', ...whose];
  const details = errors.map((error) => `  ${printableName(error)}`);
  return [`Database: ${state}.`, ...details, LEDGER_ADVICE];
}

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

function adoptedLine({ hash, user, filePath }: NewRecord): string {
  return `  ${printableName(filePath)} of ${printableName(user)} (${hash})`;
}
