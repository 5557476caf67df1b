import { resolve } from 'node:path';
import { Command } from 'commander';
import { restore } from './backup/restore.ts';
import { addServerOptions } from '../config/flags.ts';
import { DATA_FLAGS, type DataLocation, runCommand } from './shared-options.ts';
import { openBucketOf } from '../app/stored-files.ts';
import { filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { withOpen } from './with-open.ts';
import { silentLogger } from '../observability/log.ts';
import { printLines } from './printable-name.ts';

/** `holdover restore DIR`: restores a backup into a data folder that no server uses. Resolves with the exit code. */
export function restoreCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover restore')
    .description(
      'Puts a backup into an absent or empty data folder; with --ledger redis://… its records into an empty ' +
        'Redis, and with --files s3://… its files into an unused prefix of a bucket. The backup is verified ' +
        'before anything changes.',
    )
    .argument('<DIR>', 'folder that holdover backup was given');
  return runCommand(addServerOptions(command, DATA_FLAGS), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<DataLocation>();
  const files = filesSource(settings, process.env);
  return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
    const [from = ''] = command.args;
    const [dataDir, ledger] = [resolve(settings.dataDir), ledgerSource(settings.ledger)];
    const content = await restore({ from: resolve(from), dataDir, ledger, bucket });
    const { header, records, missing } = content;
    printLines([
      `Restored the backup of ${header.createdAt} into ${dataDir}: ${records} records.`,
      ...missing.map(({ hash, why }) => `Was lost before the backup was made: ${hash} (${why}).`),
    ]);
    return 0;
  });
}
