import { type Command, CommanderError } from 'commander';
import { FILES_FLAGS } from '../config/files.ts';
import { type LedgerSource, ledgerSource } from '../config/ledger.ts';
import { type Flags, parseFlags } from '../config/flags.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { withOpen } from './with-open.ts';
import { silentLogger } from '../observability/log.ts';
import { printableName } from './printable-name.ts';

/** The address of a Holdover with default settings. */
export const DEFAULT_URL = 'http://127.0.0.1:8188';

/** The flags by which a command finds the data of a server. */
export const DATA_FLAGS = ['dataDir', 'ledger', ...FILES_FLAGS] as const;

export type DataLocation = Pick<Flags, (typeof DATA_FLAGS)[number]>;

/** Parses the arguments and runs the command. Returns the exit code: 2 for invalid arguments, 1 for any other error. */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  run: (command: Command) => Promise<number>,
  /** Makes an error message safe to print on a terminal. */
  shown: (message: string) => string = printableName,
): Promise<number> {
  try {
    parseFlags(command.exitOverride(), argv, process.env);
    return await run(command);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    // A bar of progress may be on the line.
    const start = process.stderr.isTTY ? '\r\u001b[K' : '';
    process.stderr.write(
      `${start}error: ${shown(error instanceof Error ? error.message : String(error))}\n`,
    );
    return error instanceof InvalidSetting ? 2 : 1;
  }
}

/**
 * Calls `work` with the Redis of these settings, or with `undefined` when the ledger is SQLite. Closes it afterwards.
 */
export async function withRedis<T>(
  { ledger }: { readonly ledger: string },
  work: (redis: SharedRedis | undefined) => Promise<T>,
): Promise<T> {
  const source: LedgerSource = ledgerSource(ledger);
  if (source.kind === 'sqlite') return work(undefined);
  const { openSharedRedis } = await import('../ledger/redis/open-shared.ts');
  return withOpen(await openSharedRedis({ url: source.url, log: silentLogger() }), work);
}
