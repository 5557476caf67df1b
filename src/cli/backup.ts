import { randomBytes } from 'node:crypto';
import { Command } from 'commander';
import { type BackupSource, backUp } from './backup/backup.ts';
import { type OpenedData, withData } from './backup/opened-data.ts';
import { inspectLedger } from './backup/check.ts';
import { SECRET_BYTES, secretIn } from '../data-folder/data-dir.ts';
import { addServerOptions } from '../config/flags.ts';
import { DATA_FLAGS, type DataLocation, runCommand } from './shared-options.ts';
import { printLines } from './printable-name.ts';

/** `holdover backup DIR`: backs up a ledger and its files, which a server may use meanwhile. Resolves with the exit code. */
export function backupCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover backup')
    .description(
      'Copies all records and files of a ledger into DIR, also while its server runs, for "holdover restore". A ' +
        'backup that DIR already has is whole until the new one replaces it.',
    )
    .argument('<DIR>', 'folder of the backup, outside of the data folder');
  return runCommand(addServerOptions(command, DATA_FLAGS), argv, run);
}

async function run(command: Command): Promise<number> {
  const into = command.args[0] ?? '';
  const { records, files, missing } = await withData(command.opts<DataLocation>(), async (opened) =>
    backUp({ ...opened, identity: await identityOf(opened) }, into),
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
  const { problems } = await inspectLedger(opened);
  if (problems.length > 0) throw new Error(problems.join(' '));
  const folderId = await place.text('folder.id');
  // The secret that is given is used only by a Redis ledger that has none.
  const secret = (await redis?.identity.secret?.(randomBytes(SECRET_BYTES))) ?? secretIn(dataDir);
  if (!folderId || !secret) throw new Error(`no server has used ${dataDir} yet`);
  const kind = redis ? 'redis' : 'sqlite';
  return { ledger: kind, ledgerId: ledger.id(), folderId, secret: secret.toString('base64') };
}
