import { Command } from 'commander';
import { type RestoreResult, restore } from './backup/restore.ts';
import { reached } from '../lib/crash-point.ts';
import { addServerOptions } from '../config/flags.ts';
import { type DataLocation, runCommand } from './shared-options.ts';
import { openBucketOf } from '../app/stored-files.ts';
import { FILES_FLAGS, filesSource } from '../config/files.ts';
import { ledgerSource } from '../config/ledger.ts';
import { withOpen } from './with-open.ts';
import { silentLogger } from '../observability/log.ts';
import { printableName } from './printable-name.ts';
import { createProgress } from './progress.ts';

type Settings = DataLocation & { readonly replace?: boolean };

/** `holdover restore DIR`: restores a backup into a data folder that no server uses. Resolves with the exit code. */
export function restoreCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover restore')
    .description(
      'Puts a backup into an absent or empty data folder; with --ledger redis://… its records into an empty ' +
        'Redis, and with --files s3://… its files into an unused prefix of a bucket. Everything is copied and ' +
        'verified before anything takes its place, and nothing is ever deleted.',
    )
    .argument('<DIR>', 'folder that holdover backup was given')
    .option('--replace', 'move what is in the data folder into its folder set-aside');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const progress = createProgress();
  const files = filesSource(settings, process.env);
  return withOpen(await openBucketOf(files, silentLogger()), async (bucket) => {
    const result = await restore({
      from: command.args[0] ?? '',
      dataDir: settings.dataDir,
      ledger: ledgerSource(settings.ledger),
      bucket,
      existing: settings.replace === true ? 'move aside' : 'refuse',
      now: Date.now,
      progress: progress.start,
      reached,
    }).finally(progress.stop);
    process.stdout.write(textOf(result, settings, bucket?.identity.url));
    return 0;
  });
}

function textOf(
  { header, records, missing, aside }: RestoreResult,
  { dataDir, ledger }: Settings,
  url: string | undefined,
): string {
  const flags = [
    ...(ledgerSource(ledger).kind === 'redis' ? ['--ledger redis://…'] : []),
    ...(url === undefined ? [] : [`--files ${url}`]),
  ];
  const lines = [
    `Restored the backup of ${header.createdAt} into ${printableName(dataDir)}: ${records} records.`,
    ...(flags.length === 0 ? [] : [`Start the servers with ${flags.join(' ')}.`]),
    ...(aside === undefined ? [] : [`The former content is in ${printableName(aside)}.`]),
    ...missing.map(({ hash, why }) => `Was lost before the backup was made: ${hash} (${why}).`),
  ];
  return `${lines.join('\n')}\n`;
}
