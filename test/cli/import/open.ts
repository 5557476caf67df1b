import { openSqliteLedger } from '../../../src/ledger/sqlite/sqlite-ledger.ts';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { runHoldover, startHoldover, type Holdover } from '../../support/processes/holdover.ts';
import { type Ran, runCommandHere } from '../../support/processes/run-command.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

/** Runs `holdover import` to its end: in this process, unless it is to be killed. */
export function importFrom(
  source: string,
  dataDir: string,
  options: { readonly args?: readonly string[]; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Ran> {
  const { args = [], env = {} } = options;
  const argv = ['import', source, '--data-dir', dataDir, ...args] as const;
  return 'HOLDOVER_CRASH_AT' in env ? runHoldover(argv, env) : runCommandHere(argv, env);
}

/** The folder of a v1 server and a data directory, both new and empty. */
export async function folders(): Promise<{ readonly source: string; readonly dataDir: string }> {
  return { source: await tempFolder('v1'), dataDir: await tempFolder('data') };
}

/** A server over what was imported; it ends with the test. */
export async function serve(dataDir: string, args: readonly string[] = []): Promise<Holdover> {
  const server = await startHoldover({ dataDir, args });
  onTestFinished(() => server.dispose());
  return server;
}

/** The ledger's records of the local user's files, while no server runs. */
export async function recorded(dataDir: string) {
  const ledger = openSqliteLedger({ path: join(dataDir, 'holdover.db') });
  try {
    const names = [
      ...(await ledger.files.list('local', 'input')),
      ...(await ledger.files.list('local', 'output')),
    ];
    return { names, assets: await ledger.assets.ofJob('imported') };
  } finally {
    await ledger.close();
  }
}

export async function viewText(server: Holdover, query: Record<string, string>): Promise<string> {
  const answer = await fetch(`${server.url}/view?${new URLSearchParams(query)}`);
  return answer.status === 200 ? answer.text() : `status ${answer.status}`;
}
