import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { type BackupResult, type BackupSource, backUp } from './backup/backup.ts';
import { type OpenedData, withData } from './backup/opened-data.ts';
import {
  SECRET_BYTES,
  databasePath,
  refuseUnfinishedRestore,
  secretIn,
} from '../data-folder/data-dir.ts';
import { addServerOptions } from '../config/flags.ts';
import { FILES_FLAGS } from '../config/files.ts';
import { type DataLocation, runCommand } from './shared-options.ts';
import { megabytes, printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

/** `holdover backup DIR`: backs up a ledger and its files, which a server may use meanwhile. Resolves with the exit code. */
export function backupCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover backup')
    .description(
      'Copies all records and files of a ledger into DIR while its server goes on, for "holdover restore" into ' +
        'any ledger and any place of files. A backup that DIR already has is whole until the new one replaces it; ' +
        'files that it has are not copied again.',
    )
    .argument('<DIR>', 'folder of the backup, outside of the data folder');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<DataLocation>();
  const into = command.args[0] ?? '';
  const progress = createProgress();
  const { dataDir } = settings;
  const result = await withData(settings, (opened) =>
    backUp({
      dataDir,
      into,
      openSource: () => openSource(opened),
      now: Date.now,
      progress: progress.start,
    }),
  ).finally(progress.stop);
  process.stdout.write(textOf(result, into));
  return result.missing.length === 0 ? 0 : 1;
}

/** Throws when the records cannot be read, or are not those of the files. */
async function openSource({
  dataDir,
  redis,
  ledger,
  place,
  belongs,
}: OpenedData): Promise<BackupSource> {
  refuseUnfinishedRestore(dataDir);
  const { state, errors } = ledger.inspect();
  if (state !== 'ok')
    throw new Error(
      `the ledger ${databasePath(dataDir)} is ${state} (${errors[0]}): run holdover check to see the damage, or ` +
        'holdover restore to restore a backup',
    );
  // An outdated database is left in a folder whose records were moved into Redis.
  if (!(await belongs()))
    throw new Error(
      `the files of --data-dir ${dataDir} were recorded by another ledger: give the --ledger of their servers`,
    );
  const folderId = await place.readId('folder.id');
  // The secret that is given is used only by a Redis ledger that has none.
  const secret = (await redis?.identity.secret?.(randomBytes(SECRET_BYTES))) ?? secretIn(dataDir);
  if (folderId === undefined || secret === undefined)
    throw new Error(`no server has used ${dataDir} yet: it lacks secret.key or folder.id`);
  const identity = {
    ledger: ledger.kind,
    ledgerId: ledger.id(),
    folderId,
    secret: secret.toString('base64'),
  };
  return { identity, place, records: ledger.records };
}

function textOf({ records, files, copied, missing }: BackupResult, into: string): string {
  const lines = [
    `Backup in ${printableName(into)}: ${records} records and ${files} files, ${copied.files} of them new ` +
      `(${megabytes(copied.bytes)}).`,
  ];
  if (missing.length > 0) {
    lines.push(`On record, but not in the backup (see holdover check):`);
    lines.push(...missing.map(({ hash, why }) => `  ${hash}: ${why}`));
  }
  return `${lines.join('\n')}\n`;
}
