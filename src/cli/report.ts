import { resolve } from 'node:path';
import { Command } from 'commander';
import { type Flags, addServerOptions } from '../config/flags.ts';
import { databasePath } from '../data-folder/data-dir.ts';
import type { CallCount } from '../ledger/ledger.ts';
import { idsOfFolder } from '../data-folder/bind-ledger.ts';
import { readCallCounts } from '../ledger/sqlite/call-counts.ts';
import { ledgerIdIn } from '../ledger/sqlite/inspect.ts';
import { reportOf, type ReportedCall, type ReportedClient } from '../migration/usage-report.ts';
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
  const calls = await withRedis(location, async (redis) =>
    redis ? redis.ledger.calls.list() : callsInDatabase(location.dataDir),
  );
  const clients = reportOf(calls);
  const text = clients.length === 0 ? NO_CLIENTS : clients.map(clientText).join('\n');
  process.stdout.write(json ? `${JSON.stringify({ clients }, null, 2)}\n` : text);
  return 0;
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

const NO_CLIENTS = 'No client has called v1 so far.\n';
const IDS_SHOWN = 3;

function clientText(client: ReportedClient): string {
  const { user, client_ids: ids, calls, first_seen: first, last_seen: last } = client;
  const named = ids.length === 0 ? '' : `, client id ${idsText(ids)}`;
  return [
    titleOf(client),
    `  user ${user}${named}`,
    `  ${countText(calls)} from ${first} to ${last}`,
    `  ${client.verdict}`,
    ...client.because.map((reason) => `    - ${reason}`),
    ...notesOn(client.routes).map((note) => `    ${note}`),
    ...table(client.routes).map((line) => `  ${line}`),
    '',
  ].join('\n');
}

/** Returns the name of the program, with the `User-Agent` of its sockets if it differs. */
function titleOf({ agent, socket_agents: socketAgents }: ReportedClient): string {
  return socketAgents.length === 0 ? agent : `${agent}, sockets by ${socketAgents.join(', ')}`;
}

/** Returns a note for each route whose v2 call does the same with an exception. */
function notesOn(routes: readonly ReportedCall[]): string[] {
  return routes.flatMap(({ route, fit, lacks }) =>
    fit === 'same' && lacks !== null ? [`${route}, unless it needs ${lacks}`] : [],
  );
}

function idsText(ids: readonly string[]): string {
  const more = ids.length - IDS_SHOWN;
  return ids.slice(0, IDS_SHOWN).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function countText(calls: number): string {
  return calls === 1 ? '1 call' : `${calls} calls`;
}

function table(routes: readonly ReportedCall[]): string[] {
  const width = Math.max(...routes.map(({ route }) => route.length));
  const line = (route: string, times: string, last: string, v2: string): string =>
    `${route.padEnd(width)}  ${times.padStart(8)}  ${last.padEnd(19)}  ${v2}`;
  return [
    line('v1 call', 'times', 'last seen', 'v2 call'),
    ...routes.map(({ route, calls, last_seen: last, v2 }) =>
      line(route, String(calls), last.slice(0, 19).replace('T', ' '), v2 ?? '–'),
    ),
  ];
}
