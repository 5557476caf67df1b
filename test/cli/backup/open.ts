import { randomBytes } from 'node:crypto';
import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { onTestFinished } from 'vitest';
import { uploadInput } from '../../support/clients/client-helpers.ts';
import { type Holdover, runHoldover, startHoldover } from '../../support/processes/holdover.ts';
import { type Ran, runCommandHere } from '../../support/processes/run-command.ts';
import { getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { runFolder, tempFolder } from '../../support/graphs/v1-folders.ts';
import { flat } from '../../support/graphs/workflows.ts';

type Options = { readonly args?: readonly string[]; readonly env?: NodeJS.ProcessEnv };

/** A data folder and one for backups; both are empty. */
export async function folders(): Promise<{ readonly dataDir: string; readonly into: string }> {
  return { dataDir: await tempFolder('data'), into: await tempFolder('backups') };
}

/** A server with an engine of its own; it ends with the test. */
export async function serve(dataDir: string, options: Options = {}): Promise<Holdover> {
  const server = await startHoldover({ dataDir, upstream: 'embedded', ...options });
  onTestFinished(() => server.dispose());
  return server;
}

/** In this process, unless it is to be killed. */
function run(argv: Parameters<typeof runCommandHere>[0], env: NodeJS.ProcessEnv = {}) {
  return 'HOLDOVER_CRASH_AT' in env ? runHoldover(argv, env) : runCommandHere(argv, env);
}

export function backup(dataDir: string, into: string, options: Options = {}): Promise<Ran> {
  return run(['backup', into, '--data-dir', dataDir, ...(options.args ?? [])], options.env);
}

export function restore(from: string, dataDir: string, options: Options = {}): Promise<Ran> {
  return run(['restore', from, '--data-dir', dataDir, ...(options.args ?? [])], options.env);
}

export function check(dataDir: string, ...args: readonly string[]): Promise<Ran> {
  return run(['check', '--data-dir', dataDir, ...args]);
}

/** Hashes (hex) of the files below a data folder, or a backup of one. */
export async function blobsIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(join(folder, 'blobs'), { recursive: true }).catch(() => []);
  return names
    .map((name) => name.slice(3))
    .filter((name) => name.length === 64)
    .toSorted();
}

export function blobIn(folder: string, hex: string): string {
  return join(folder, 'blobs', hex.slice(0, 2), hex);
}

export async function flipByte(path: string, at = 0.5): Promise<void> {
  const bytes = await readFile(path);
  const index = Math.floor(bytes.length * at);
  bytes[index] = (bytes[index] ?? 0) ^ 0x10;
  await writeFile(path, bytes);
}

/** Changes a database that no server has open. */
export function inDatabase(dataDir: string, sql: string): void {
  const db = new DatabaseSync(join(dataDir, 'holdover.db'));
  db.exec(sql);
  db.close();
}

/** All that a client was told, as it can be asked for again. */
export type ServerState = {
  readonly history: unknown;
  readonly settings: unknown;
  readonly userData: string;
  readonly pictures: readonly string[];
};

const ANN = { 'X-API-Key': 'ann' };

/** Leaves something of each kind: a run, uploads, settings, a workflow, another user's file. */
export async function fillServer({ url }: Holdover): Promise<void> {
  await uploadInput(url, { bytes: randomBytes(5000), name: 'first.bin' });
  await uploadInput(url, { bytes: randomBytes(5000), name: 'anns.bin' }, ANN);
  await postPrompt(url, { prompt: flat({ prefix: 'kept' }), prompt_id: 'run' });
  await untilIdle(url);
  await fetch(`${url}/settings/Comfy.Colour`, { method: 'POST', body: '"blue"' });
  await fetch(`${url}/userdata/workflows%2Fw.json`, { method: 'POST', body: '{"a": 1}' });
}

/** The folder of a stopped server that had something of each kind. */
export type Template = {
  readonly folder: string;
  readonly state: ServerState;
  /** A data folder like it, which goes when the test is over. */
  copy(): Promise<string>;
  dispose(): Promise<void>;
};

export async function makeTemplate(): Promise<Template> {
  const folder = await runFolder('template');
  const server = await startHoldover({ dataDir: folder, upstream: 'embedded' });
  await fillServer(server);
  const state = await serverStateOf(server);
  await server.terminate();
  return {
    folder,
    state,
    async copy() {
      const dataDir = await tempFolder('data');
      await cp(folder, dataDir, { recursive: true, preserveTimestamps: true });
      return dataDir;
    },
    dispose: () => rm(folder, { recursive: true, force: true }),
  };
}

export async function untilIdle(url: string): Promise<void> {
  for (;;) {
    if ((await getJson(`${url}/prompt`)).exec_info.queue_remaining === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function serverStateOf({ url }: Holdover): Promise<ServerState> {
  const views = [
    ['first.bin', 'input', {}],
    ['anns.bin', 'input', ANN],
    ['kept_00001_.png', 'output', {}],
  ] as const;
  return {
    history: await getJson(`${url}/history`),
    settings: await getJson(`${url}/settings`),
    userData: await (await fetch(`${url}/userdata/workflows%2Fw.json`)).text(),
    pictures: await Promise.all(views.map(([name, type, who]) => view(url, { name, type }, who))),
  };
}

/** The bytes under a name, or the status that says there are none. */
export async function view(
  url: string,
  file: { readonly name: string; readonly type: string; readonly subfolder?: string },
  headers: Record<string, string> = {},
): Promise<string> {
  const { name: filename, type, subfolder = '' } = file;
  const query = new URLSearchParams({ filename, type, subfolder });
  const answer = await fetch(`${url}/view?${query}`, { headers });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return answer.status === 200 ? bytes.toString('base64') : `status ${answer.status}`;
}
