import { Command } from 'commander';
import { addServerOptions } from '../config/flags.ts';
import { FILES_FLAGS, bucketUrl, filesSource } from '../config/files.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { ledgerSource } from '../config/ledger.ts';
import { migrate } from './migrate/migrate.ts';
import { migrateFiles } from './migrate/migrate-files.ts';
import { type DataLocation, runCommand } from './shared-options.ts';
import { createProgress } from './progress.ts';

type Settings = DataLocation & {
  readonly from?: string;
  readonly to?: string;
  readonly fromFiles?: string;
  readonly toFiles?: string;
};

/**
 * `holdover migrate`: copies the records of a ledger into another ledger, or its files to another place. Resolves
 * with the exit code.
 */
export function migrateCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover migrate')
    .description(
      'Copies all records of one ledger into another, empty one, or all files of one ledger from its ' +
        'folder into a bucket or back, and verifies them. Stop all servers and workers first. The ' +
        'source stays as it is; run again, it goes on where it stopped.',
    )
    .option('--from <LEDGER>', '"sqlite" in the data directory, or redis://…')
    .option('--to <LEDGER>', 'the same; its address may carry a password')
    .option('--from-files <PLACE>', '"folder" (the data directory), or s3://BUCKET/PREFIX')
    .option('--to-files <PLACE>', 'the same');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger', ...FILES_FLAGS]), argv, run);
}

async function run(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const { from, to, fromFiles, toFiles } = settings;
  const given = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  if (from !== undefined && to !== undefined && fromFiles === undefined && toFiles === undefined) {
    if (given('ledger')) throw new InvalidSetting(NOT_LEDGER);
    return await runLedger(settings, { from, to });
  }
  if (fromFiles !== undefined && toFiles !== undefined && from === undefined && to === undefined) {
    if (given('files')) throw new InvalidSetting(NOT_FILES);
    return await runFiles(settings, { fromFiles, toFiles });
  }
  throw new InvalidSetting(ONE_PAIR);
}

const ONE_PAIR = "give either '--from' and '--to', or '--from-files' and '--to-files'";
const NOT_LEDGER = "option '--ledger' goes with '--from-files': '--from' and '--to' name ledgers";
const NOT_FILES =
  "option '--files' goes with '--from': '--from-files' and '--to-files' name places";

async function runLedger(
  settings: Settings,
  names: { readonly from: string; readonly to: string },
): Promise<number> {
  const from = ledgerSource(names.from);
  const to = ledgerSource(names.to);
  if (from.kind === to.kind) {
    throw new InvalidSetting("one of '--from' and '--to' must be \"sqlite\", and one redis://…");
  }
  const progress = createProgress();
  const records = await migrate({
    from,
    to,
    dataDir: settings.dataDir,
    files: filesSource(settings, process.env),
    progress: progress.start,
  }).finally(progress.stop);
  process.stdout.write(
    `Copied and verified ${records} records. Start the servers with --ledger ${to.kind === 'redis' ? 'redis://…' : 'sqlite'}.\n`,
  );
  return 0;
}

async function runFiles(
  settings: Settings,
  { fromFiles, toFiles }: { readonly fromFiles: string; readonly toFiles: string },
): Promise<number> {
  const placeOf = (files: string) => filesSource({ ...settings, files }, process.env);
  const [from, to] = [placeOf(fromFiles), placeOf(toFiles)];
  const bucket = to.kind === 'bucket' ? to : from;
  if (bucket.kind === 'folder' || from.kind === to.kind) throw new InvalidSetting(ONE_OF_EACH);
  const progress = createProgress();
  const files = await migrateFiles({
    dataDir: settings.dataDir,
    ledger: ledgerSource(settings.ledger),
    bucket,
    to: to.kind,
    progress: progress.start,
  }).finally(progress.stop);
  const flag = to.kind === 'bucket' ? `with --files ${bucketUrl(to)}` : 'without --files';
  process.stdout.write(`Copied and verified ${files} files. Start the servers ${flag}.\n`);
  return 0;
}

const ONE_OF_EACH =
  "one of '--from-files' and '--to-files' must be \"folder\", and one s3://BUCKET/PREFIX";
