import { type Command, CommanderError } from 'commander';
import { type LedgerSource, ledgerSource } from '../config/ledger.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import type { SharedRedis } from '../ledger/redis/open-shared.ts';
import { silentLogger } from '../observability/log.ts';
import { createProgress } from './import/progress.ts';
import { printableName } from './printable-name.ts';

/** Settings a command shares with the server whose data it is about. */
export type DataLocation = { readonly dataDir: string; readonly ledger: string };

/** Parses and runs; gives the exit code: 2 is for what cannot be meant, 1 for what went wrong. */
export async function runCommand(
  command: Command,
  argv: readonly string[],
  run: (command: Command) => Promise<number>,
  /** How a message is made fit for a terminal. */
  shown: (message: string) => string = printableName,
): Promise<number> {
  try {
    command.exitOverride().parse([...argv], { from: 'user' });
    return await run(command);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    process.stderr.write(
      `error: ${shown(error instanceof Error ? error.message : String(error))}\n`,
    );
    return error instanceof InvalidSetting ? 2 : 1;
  }
}

/** Works with the Redis of these settings; `undefined` is given when the ledger is a database. */
export async function withRedis<T>(
  { ledger }: DataLocation,
  work: (redis: SharedRedis | undefined) => Promise<T>,
): Promise<T> {
  const source: LedgerSource = ledgerSource(ledger);
  if (source.kind === 'sqlite') return work(undefined);
  const { openSharedRedis } = await import('../ledger/redis/open-shared.ts');
  const redis = await openSharedRedis({ url: source.url, log: silentLogger() });
  try {
    return await work(redis);
  } finally {
    await redis.close();
  }
}

/** Shows how far it is on standard error: a bar, or lines now and then. */
export function createBar() {
  let stop = (): void => {};
  return {
    start: (total: { files: number; bytes: number }) => {
      const progress = createProgress(process.stderr, total);
      stop = () => progress.stop();
      return (bytes: number) => progress.add(bytes);
    },
    stop: () => stop(),
  };
}
