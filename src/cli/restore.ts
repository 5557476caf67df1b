import { Command } from 'commander';
import { type BackupContent, restore } from './backup/restore.ts';
import { addServerOptions } from '../config/flags.ts';
import { type DataLocation, runCommand } from './shared-options.ts';
import { openBucketOf } from '../app/stored-files.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { withOpen } from './with-open.ts';
import { silentLogger } from '../observability/log.ts';
import { printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

/** `holdover restore DIR`: restores a backup into a data folder that no server uses. Resolves with the exit code. */
export function restoreCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover restore')
    .description(
      'Puts a backup into an absent or empty data folder; with --ledger redis://… its records into an empty ' +
        'Redis, and with --files s3://… its files into an unused prefix of a bucket. The backup is verified ' +
        'before anything changes.',
    )
    .argument('<DIR>', 'folder that holdover backup was given');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<DataLocation>();
  const progress = createProgress();
  const files = filesSource(settings, process.env);
  return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
    const result = await restore({
      from: command.args[0] ?? '',
      dataDir: settings.dataDir,
      ledger: ledgerSource(settings.ledger),
      bucket,
      progress: progress.start,
    }).finally(progress.stop);
    process.stdout.write(textOf(result, settings, bucket?.identity.url));
    return 0;
  });
}

function textOf(
  { header, records, missing }: BackupContent,
  { dataDir, ledger }: DataLocation,
  url: string | undefined,
): string {
  const flags = [
    ...(ledgerSource(ledger).kind === 'redis' ? ['--ledger redis://…'] : []),
    ...(url === undefined ? [] : [`--files ${url}`]),
  ];
  const lines = [
    `Restored the backup of ${header.createdAt} into ${printableName(dataDir)}: ${records} records.`,
    ...(flags.length === 0 ? [] : [`Start the servers with ${flags.join(' ')}.`]),
    ...missing.map(({ hash, why }) => `Was lost before the backup was made: ${hash} (${why}).`),
  ];
  return `${lines.join('\n')}\n`;
}
