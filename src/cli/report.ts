import { resolve } from 'node:path';
import { Command } from 'commander';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import type { CallCount } from '../ledger/ledger.ts';
import { idsOfFolder } from '../data-folder/bind-ledger.ts';
import { readCallCounts } from '../ledger/sqlite/call-counts.ts';
import { ledgerIdIn } from '../ledger/sqlite/inspect.ts';
import { reportOf } from '../migration/usage-report.ts';
import { reportText } from '../migration/usage-report-text.ts';
import { runCommand, withRedis } from './shared-options.ts';

type Settings = Pick<Flags, 'dataDir' | 'ledger'> & { readonly json?: boolean };

/** `holdover report`: lists the clients that still use v1. A server may run meanwhile. Resolves with the exit code. */
export function reportCommand(argv: readonly string[]): Promise<number> {
  const command = new Command('holdover report')
    .description('Shows which clients still call v1, what they call, and what v2 has in its place.')
    .option('--json', 'for programs');
  return runCommand(addServerOptions(command, ['dataDir', 'ledger']), argv, printReport, String);
}

async function printReport(command: Command): Promise<number> {
  const { json, ...location } = command.opts<Settings>();
  const clients = reportOf(await callsIn(location));
  process.stdout.write(json ? `${JSON.stringify({ clients }, null, 2)}\n` : reportText(clients));
  return 0;
}

async function callsIn({ dataDir, ledger }: Settings): Promise<readonly CallCount[]> {
  return withRedis({ ledger }, async (redis) =>
    redis ? redis.ledger.calls.list() : callsInDatabase(dataDir),
  );
}

function callsInDatabase(dataDir: string): readonly CallCount[] {
  const path = databasePath(dataDir);
  let rows: readonly CallCount[] | undefined;
  let isFormer = false;
  try {
    rows = readCallCounts(path);
    const { ledgerId } = idsOfFolder(dataDir);
    isFormer = rows !== undefined && ledgerId !== undefined && ledgerIdIn(path) !== ledgerId;
  } catch (cause) {
    const { message } = cause as Error;
    throw new Error(`the ledger ${resolve(path)} cannot be read: ${message}`, { cause });
  }
  if (isFormer)
    throw new Error(`the files in ${dataDir} have another ledger: name it with --ledger`);
  if (rows) return rows;
  throw new Error(`there is no ledger ${path}: name the server's --data-dir`);
}
