import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { type BackupSource, backUp } from './backup/backup.ts';
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
import { printLines } from './printable-name.ts';

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
  const into = command.args[0] ?? '';
  const { records, files, missing } = await withData(command.opts<DataLocation>(), async (opened) =>
    backUp({ ...opened, ...opened.ledger, identity: await identityOf(opened) }, into),
  );
  printLines([
    `Backup in ${into}: ${records} records and ${files} files.`,
    ...missing.map(
      ({ hash, why }) => `On record, but not in the backup (see holdover check): ${hash}: ${why}`,
    ),
  ]);
  return missing.length === 0 ? 0 : 1;
}

/** Throws when the records cannot be read, or are not those of the files. */
async function identityOf(opened: OpenedData): Promise<BackupSource['identity']> {
  const { dataDir, redis, ledger, place } = opened;
  refuseUnfinishedRestore(dataDir);
  const { state, why } = ledger.inspect();
  if (state !== 'ok')
    throw new Error(
      `the ledger ${databasePath(dataDir)} is ${state} (${why}): restore a backup with holdover restore`,
    );
  // An outdated database is left in a folder whose records were moved into Redis.
  if (!(await opened.belongs()))
    throw new Error(
      `the files of --data-dir ${dataDir} were recorded by another ledger: give the --ledger of their servers`,
    );
  const folderId = await place.text('folder.id');
  // The secret that is given is used only by a Redis ledger that has none.
  const secret = (await redis?.identity.secret?.(randomBytes(SECRET_BYTES))) ?? secretIn(dataDir);
  if (folderId === undefined || secret === undefined)
    throw new Error(`no server has used ${dataDir} yet: it lacks secret.key or folder.id`);
  const kind = redis ? 'redis' : 'sqlite';
  return { ledger: kind, ledgerId: ledger.id(), folderId, secret: secret.toString('base64') };
}
