import { Command } from 'commander';
import { type CommandExit, addServerOptions, exitFor } from './command-line.ts';
import { type FilesSource, filesSource } from './files.ts';
import type { Flags } from './flags.ts';
import { type LedgerSource, type WorkerLimits, ledgerSource } from './ledger.ts';
import { parseJsonObject } from './parse-values.ts';
import { InvalidSetting } from './invalid-setting.ts';

/** Settings of the server that mean the same to a process that only runs jobs. */
const WORKER_OPTIONS = [
  'ledger',
  'workerLimits',
  'dataDir',
  'files',
  's3Endpoint',
  's3PublicEndpoint',
  's3Region',
  'concurrency',
  'jobTimeout',
  'jobMemory',
  'diskBudget',
  'retentionDays',
  'logLevel',
] as const satisfies readonly (keyof Flags)[];

type WorkerFlags = Pick<Flags, (typeof WORKER_OPTIONS)[number]>;

export type WorkerSettings = WorkerFlags & {
  readonly source: LedgerSource & { kind: 'redis' };
  readonly filesSource: FilesSource;
  readonly takeover: WorkerLimits;
};

export type ParsedWorkerConfig =
  | { readonly kind: 'settings'; readonly settings: WorkerSettings }
  | CommandExit;

/** Reads the flags of `holdover worker` and their environment variables. */
export function parseWorkerConfig(argv: readonly string[]): ParsedWorkerConfig {
  let text = '';
  const command = new Command('holdover worker')
    .description('Runs jobs of a Holdover whose ledger is in Redis; answers no calls of clients.')
    .exitOverride()
    .configureOutput({
      writeOut: (chunk) => (text += chunk),
      writeErr: (chunk) => (text += chunk),
    });
  try {
    addServerOptions(command, WORKER_OPTIONS).parse([...argv], { from: 'user' });
    return { kind: 'settings', settings: settingsOf(command.opts<WorkerFlags>()) };
  } catch (error) {
    return exitFor(error, text);
  }
}

function settingsOf(flags: WorkerFlags): WorkerSettings {
  const source = ledgerSource(flags.ledger);
  if (source.kind !== 'redis')
    throw new InvalidSetting("a worker needs the '--ledger redis://…' of the servers it works for");
  if (flags.concurrency === 0)
    throw new InvalidSetting("a worker needs a '--concurrency' of 1 or more");
  if (flags.dataDir === '')
    throw new InvalidSetting("option '--data-dir' needs the name of a folder");
  return {
    ...flags,
    source,
    filesSource: filesSource(flags, process.env),
    takeover: parseJsonObject('--worker-limits', flags.workerLimits) as WorkerLimits,
  };
}
