import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { entryOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect, postPrompt } from '../support/clients/v1-client.ts';
import { runFolder, tempFolder } from '../support/graphs/v1-folders.ts';

/** A server and the plain folders it shares; all of it goes with the test. */
export type Shared = {
  readonly server: Holdover;
  readonly input: string;
  readonly output: string;
  readonly dataDir: string;
};

type Options = Parameters<typeof startHoldover>[0];

/** One server for the tests of a group, whose files have names of their own. */
export function useShared(options: Options = {}): Shared {
  const shared = {} as Shared;
  let root = '';
  beforeAll(async () => {
    root = await runFolder('shared');
    const folder = (name: string) => join(root, name);
    const folders = { input: folder('input'), output: folder('output'), dataDir: folder('data') };
    Object.assign(shared, await start(folders, options));
  });
  afterAll(() => shared.server.dispose());
  return shared;
}

export async function share(given: Partial<Shared> = {}, options: Options = {}): Promise<Shared> {
  const input = given.input ?? (await tempFolder('input'));
  const output = given.output ?? (await tempFolder('output'));
  const dataDir = given.dataDir ?? (await tempFolder('data'));
  const shared = await start({ input, output, dataDir }, options);
  onTestFinished(() => shared.server.dispose());
  return shared;
}

async function start(folders: Omit<Shared, 'server'>, options: Options = {}): Promise<Shared> {
  const { input, output, dataDir } = folders;
  const flags = ['--input-directory', input, '--output-directory', output];
  const args = [...flags, ...(options.args ?? [])];
  return { server: await startHoldover({ ...options, dataDir, args }), ...folders };
}

/** Paths of the files below a folder. */
export async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((f) => join(f.parentPath, f.name).slice(folder.length + 1)).toSorted();
}

type Image = { filename: string; subfolder: string; type: string };

/** Runs a prompt to its end; the files of its output nodes. */
export async function run(
  server: Holdover,
  prompt: unknown,
  headers: Record<string, string> = {},
): Promise<readonly Image[]> {
  const client = await connect(server.wsUrl, { clientId: 'runner', headers });
  const { body } = await postPrompt(server.url, { prompt, client_id: 'runner' }, { headers });
  await client.untilDone(body.prompt_id);
  await client.close();
  const entry = await entryOf(server.url, body.prompt_id, headers);
  return Object.values<{ images?: Image[] }>(entry.outputs).flatMap(({ images = [] }) => images);
}

export async function viewBytes(
  server: Holdover,
  image: Partial<Image>,
  headers: Record<string, string> = {},
): Promise<Buffer> {
  const query = new URLSearchParams(image as Record<string, string>);
  const answer = await fetch(`${server.url}/view?${query}`, { headers });
  return answer.status === 200
    ? Buffer.from(await answer.arrayBuffer())
    : Buffer.from(`status ${answer.status}`);
}

export function textOf(folder: string, path: string): Promise<string> {
  return readFile(join(folder, path), 'utf8');
}
