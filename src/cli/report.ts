import { resolve } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import { ledgerSource } from '../config/ledger.ts';
import { InvalidSetting } from '../config/invalid-setting.ts';
import { databasePath } from '../app/data-dir.ts';
import type { CallCount } from '../ledger/ledger.ts';
import { openSharedRedis } from '../ledger/redis/open-shared.ts';
import { readCallCounts } from '../ledger/sqlite/call-counts.ts';
import { silentLogger } from '../observability/log.ts';
import { reportOf } from '../migration/usage-report.ts';
import { reportText } from '../migration/usage-report-text.ts';

type Flags = { readonly dataDir: string; readonly ledger: string; readonly json?: boolean };

/** `holdover report`: lists the clients that still use v1; the server may be running. Resolves with the exit code. */
export async function reportCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover report')
    .description('Shows which clients still call v1, what they call, and what v2 has in its place.')
    .addOption(
      new Option('--data-dir <DIR>', 'of the server').default('./data').env('HOLDOVER_DATA_DIR'),
    )
    .addOption(
      new Option('--ledger <URL>', 'of the server, when it is not in its data directory')
        .default('sqlite')
        .env('HOLDOVER_LEDGER'),
    )
    .option('--json', 'for programs')
    .exitOverride();
  try {
    command.parse([...argv], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  return printReport(command.opts<Flags>());
}

async function printReport({ json, ...location }: Flags): Promise<number> {
  try {
    const clients = reportOf(await callsIn(location));
    process.stdout.write(json ? `${JSON.stringify({ clients }, null, 2)}\n` : reportText(clients));
    return 0;
  } catch (error) {
    process.stderr.write(`error: ${(error as Error).message}\n`);
    return error instanceof InvalidSetting ? 2 : 1;
  }
}

async function callsIn({ dataDir, ledger }: Flags): Promise<readonly CallCount[]> {
  const source = ledgerSource(ledger);
  if (source.kind === 'sqlite') return callsInDatabase(databasePath(dataDir));
  const shared = await openSharedRedis({ url: source.url, log: silentLogger() });
  try {
    return await shared.ledger.calls.list();
  } finally {
    await shared.close();
  }
}

function callsInDatabase(path: string): readonly CallCount[] {
  let rows: readonly CallCount[] | undefined;
  try {
    rows = readCallCounts(path);
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`the ledger ${resolve(path)} cannot be read: ${message}`, { cause });
  }
  if (rows) return rows;
  throw new Error(`there is no ledger ${path}: name the server's --data-dir`);
}
