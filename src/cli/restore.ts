import { Command } from 'commander';
import { type RestoreResult, restore } from './backup/restore.ts';
import { reached } from '../lib/crash-point.ts';
import { addServerOptions } from '../config/command-line.ts';
import { createBar, runCommand } from './shared-options.ts';
import { printableName } from './printable-name.ts';

type Settings = { readonly dataDir: string; readonly at?: string; readonly replace?: boolean };

/** `holdover restore DIR`: puts a backup into a data folder that no server uses. */
export function restoreCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover restore')
    .description(
      'Puts a backup into an absent or empty data folder. Everything is copied and verified ' +
        'before anything takes its place, and nothing is ever deleted.',
    )
    .argument('<DIR>', 'folder that holdover backup was given')
    .option('--at <NAME>', 'name of the backup; otherwise the newest complete one')
    .option('--replace', 'move what is in the data folder into its folder set-aside');
  return runCommand(addServerOptions(command, ['dataDir']), argv, runRestore);
}

async function runRestore(command: Command): Promise<number> {
  const settings = command.opts<Settings>();
  const bar = createBar();
  const result = await restore({
    from: command.args[0] ?? '',
    at: settings.at,
    dataDir: settings.dataDir,
    existing: settings.replace === true ? 'move aside' : 'refuse',
    now: Date.now,
    progress: bar.start,
    reached,
  }).finally(bar.stop);
  process.stdout.write(textOf(result, settings));
  return 0;
}

function textOf({ name, manifest, passedOver, aside }: RestoreResult, { dataDir }: Settings) {
  const { files, missing, createdAt } = manifest;
  const lines = [
    ...passedOver.map((why) => `Passed over: ${printableName(why)}.`),
    `Restored ${name} (made ${createdAt}) into ${printableName(dataDir)}: ${files.length} files.`,
    ...(aside === undefined ? [] : [`What was there before is in ${printableName(aside)}.`]),
    ...missing.map(({ hash, why }) => `Was lost before the backup was made: ${hash} (${why}).`),
    ...(manifest.ledger === 'redis' ? [REDIS] : []),
  ];
  return `${lines.join('\n')}\n`;
}

const REDIS =
  'The records are in Redis: put back its snapshot that was saved before this backup, and then ' +
  'start the servers.';
