import { Command, InvalidArgumentError } from 'commander';
import { type BackupResult, backUp } from './backup/backup.ts';
import { isRecordedBy, recordedFiles, requireSound } from './backup/records.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import { reached } from '../lib/crash-point.ts';
import { addServerOptions } from '../config/flags.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { filesOfBucket } from './backup/bucket-files.ts';
import { withFiles } from './files/with-files.ts';
import { type DataLocation, runCommand, withRedis } from './shared-options.ts';
import { megabytes, printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

type Settings = DataLocation & { readonly keep?: number };

/** `holdover backup DIR`: backs up a data folder, which a server may use meanwhile. Resolves with the exit code. */
export function backupCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover backup')
    .description(
      'Backs up the data folder while its server goes on. Each call makes one complete backup in ' +
        'DIR; files the one before has already take no more room.',
    )
    .argument('<DIR>', 'folder for backups, outside of the data folder')
    .option('--keep <N>', 'remove older complete backups beyond so many', atLeastOne);
  return runCommand(
    addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]),
    argv,
    runBackup,
  );
}

async function runBackup(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const into = command.args[0] ?? '';
  const progress = createProgress();
  const { dataDir, keep } = settings;
  const files = filesSource(settings, process.env);
  const result = await withRedis(settings, async (redis) =>
    withFiles({ dataDir, files }, ({ bucket, recordedBy }) =>
      backUp({
        dataDir,
        bucket: bucket && filesOfBucket(bucket),
        into,
        openRecords() {
          if (!redis) requireSound(databasePath(dataDir), DAMAGE_ADVICE);
          const records = recordedFiles(dataDir, redis);
          // An outdated database is left in the folder when the records were moved into Redis.
          if (isRecordedBy(records, recordedBy)) return records;
          throw new Error(
            `the files of --data-dir ${dataDir} were recorded by another ledger: give the --ledger of their servers`,
          );
        },
        keep,
        now: Date.now,
        progress: progress.start,
        reached,
      }),
    ),
  ).finally(progress.stop);
  process.stdout.write(textOf(result, into, settings));
  return result.missing.length === 0 ? 0 : 1;
}

const DAMAGE_ADVICE =
  'run holdover check to see the damage, or holdover restore to restore a backup';

function textOf(result: BackupResult, into: string, { ledger }: Settings): string {
  const { name, files, copied, missing, removed } = result;
  const lines = [
    `Backup ${name} in ${printableName(into)}: ${files} files, ${copied.files} of them new ` +
      `(${megabytes(copied.bytes)}).`,
    ...(removed.length > 0 ? [`Removed: ${removed.join(', ')}.`] : []),
    ...(ledger === 'sqlite' ? [] : [REDIS]),
  ];
  if (missing.length > 0) {
    lines.push(`On record, but not in the backup (see holdover check):`);
    lines.push(...missing.map(({ hash, why }) => `  ${hash}: ${why}`));
  }
  return `${lines.join('\n')}\n`;
}

const REDIS =
  'The records are in Redis and not in this backup. Save them before each backup, with redis-cli --rdb ' +
  'or the snapshots of your service: a backup that is older than the records lacks files that they name.';

function atLeastOne(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a number from 1 to 999999.');
}
