import { Command } from 'commander';
import { addServerOptions } from '../config/command-line.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { ledgerSource } from '../config/ledger.ts';
import { migrate } from './migrate/migrate.ts';
import { createBar, runCommand } from './shared-options.ts';

type Settings = { readonly dataDir: string; readonly from: string; readonly to: string };

/** `holdover migrate`: copies a ledger into another one. Resolves with the exit code. */
export function migrateCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover migrate')
    .description(
      'Copies all records of one ledger into another, empty one and verifies them. Stop all servers ' +
        'and workers first. The source stays as it is; run again, it goes on where it stopped.',
    )
    .requiredOption('--from <LEDGER>', '"sqlite" in the data directory, or redis://…')
    .requiredOption('--to <LEDGER>', 'the same; its address may carry a password');
  return runCommand(addServerOptions(command, ['dataDir']), argv, run);
}

async function run(command: Command): Promise<number> {
  const { dataDir, ...settings } = command.opts<Settings>();
  const from = ledgerSource(settings.from);
  const to = ledgerSource(settings.to);
  if (from.kind === to.kind) {
    throw new InvalidSetting("one of '--from' and '--to' must be \"sqlite\", and one redis://…");
  }
  const bar = createBar();
  const records = await migrate({
    from,
    to,
    dataDir,
    progress: (files) => bar.start({ files, bytes: 0 }),
  }).finally(bar.stop);
  process.stdout.write(
    `Copied and verified ${records} records. Start the servers with --ledger ${to.kind === 'redis' ? 'redis://…' : 'sqlite'}.\n`,
  );
  return 0;
}
