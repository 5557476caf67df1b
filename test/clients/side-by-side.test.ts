import { Client } from '@stable-canvas/comfyui-client';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import {
  NOT_A_PICTURE,
  entryOf,
  formatOf,
  pngText,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { installPackages } from '../support/clients/python-packages.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { growing, loading } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// Public client programs, unchanged, on one server with default settings and all at once, while prompts
// of other programs fail: mcp-comfyui raises on any `execution_error` it receives, comfyui-utils asserts
// that each frame is text, each `executed` its own and no more than one prompt runs, comfy-api-simplified and
// @stable-canvas/comfyui-client take every binary frame for a picture, comfy-ui-client looks
// for its graph in the history at each `status`, comfyui-async-api-tool and comfy-toolkit end at
// `execution_success` or an error of their own.

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const REQUIREMENTS = fileURLToPath(new URL('./requirements.txt', import.meta.url));
const SCRIPT = fileURLToPath(new URL('../support/scripts/client_programs.py', import.meta.url));
const PYTHON = [
  'mcp-comfyui',
  'comfyui-utils',
  'comfy-api-simplified',
  'comfy-ui-client',
  'comfyui-async-api-tool',
  'comfy-toolkit',
];
const ROUNDS = 2;

const installed = await installPackages('clients', REQUIREMENTS);
const packages = installed.ok ? installed.packages : '';
const notRun = installed.ok ? '' : ` (NOT RUN: ${installed.why})`;
if (notRun) console.warn(`Python clients could not be installed, their tests do not run${notRun}`);

type Told = { readonly files?: readonly [string, string][]; readonly error?: string };
type Picture = { readonly name: string; readonly look: string; readonly seed: number };

const seedOf = (program: number, round: number): number => 1_000 + 100 * program + round;

/** A workflow whose sampler sends previews, as a title-minded library wants it. */
function workflow(prefix: string, seed: number): object {
  const nodes = Object.entries(growing({ prefix, seed }));
  const titled = nodes.map(([id, node]) => {
    const title = id === '9' ? 'Save Image' : 'Sampler';
    return [id, { ...(node as object), _meta: { title } }] as const;
  });
  return Object.fromEntries(titled);
}

/** The name the library gives to a picture, and the seed in the picture's own metadata. */
async function pictureIn(name: string, bytes: Buffer): Promise<Picture> {
  const seed = /"seed": (\d+)/.exec(pngText(bytes, 'prompt') ?? '')?.[1];
  return { name, look: await formatOf(bytes), seed: Number(seed) };
}

/** One library gives no names. */
const nameOf = (prefix: string, round: number): string =>
  prefix === 'comfyui-async-api-tool' ? 'image' : `${prefix}_0000${round + 1}_.png`;

const wanted = (program: number, prefix: string): Picture[][] =>
  Array.from({ length: ROUNDS }, (_, round) => [
    {
      name: nameOf(prefix, round),
      look: 'png 64x64',
      seed: seedOf(program, round),
    },
  ]);

describe.skipIf(!installed.ok)(`client programs beside each other${notRun}`, () => {
  const holdover = useHoldover();
  let folder: string;

  beforeAll(async () => {
    folder = await runFolder('clients');
    await uploadInput(holdover.url, { bytes: NOT_A_PICTURE, name: 'corrupt.png' });
  });

  /** The pictures, or the error text, that a Python library gives for each of its workflows. */
  async function python(library: string, program: number): Promise<(Picture[] | string)[]> {
    const paths = await Promise.all(
      Array.from({ length: ROUNDS }, async (_, round) => {
        const path = join(folder, `${library}-${round}.json`);
        await writeFile(path, JSON.stringify(workflow(library, seedOf(program, round))));
        return path;
      }),
    );
    const { stdout } = await promisify(execFile)(
      'python3',
      [SCRIPT, library, `127.0.0.1:${holdover.port}`, ...paths],
      { env: { ...process.env, PYTHONPATH: packages }, maxBuffer: 64 * 1024 * 1024 },
    );
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Told);
    return Promise.all(
      told.map(
        async ({ files = [], error }) =>
          error ??
          Promise.all(files.map(([name, text]) => pictureIn(name, Buffer.from(text, 'base64')))),
      ),
    );
  }

  /** The pictures of `enqueue`, which waits for the first `executed` of its prompt. */
  async function stableCanvas(program: number): Promise<(Picture[] | string)[]> {
    const client = new Client({ api_host: `127.0.0.1:${holdover.port}`, WebSocket });
    await client.connect();
    const results: (Picture[] | string)[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const graph = workflow('stable-canvas', seedOf(program, round));
      results.push(await enqueued(client, graph).catch(String));
    }
    client.close();
    return results;
  }

  async function enqueued(client: Client, graph: object): Promise<Picture[]> {
    const { images } = await client.enqueue(graph as Parameters<Client['enqueue']>[0]);
    return Promise.all(
      images.map(async ({ data }) => {
        if (typeof data !== 'string') return pictureIn('bytes of the socket', Buffer.from(data));
        const name = new URL(data).searchParams.get('filename') ?? '';
        return pictureIn(name, Buffer.from(await (await fetch(data)).arrayBuffer()));
      }),
    );
  }

  /** Programs without a client id, and a v2 client: prompts that fail, and some that do not. */
  async function others(isOver: () => boolean): Promise<string[]> {
    const v2 = v2Client(holdover.url);
    const statuses: string[] = [];
    for (let round = 0; !isOver(); round++) {
      const failing = loading('corrupt.png', `other-${round}`);
      const { body } = await postPrompt(holdover.url, { prompt: failing });
      await v2.submit(failing);
      await postPrompt(holdover.url, { prompt: growing({ seed: 5_000 + round, prefix: 'other' }) });
      await expect
        .poll(() => entryOf(holdover.url, body.prompt_id), { timeout: 60_000 })
        .toBeDefined();
      const { status } = await entryOf(holdover.url, body.prompt_id);
      statuses.push(status.messages.at(-1)[0]);
    }
    return statuses;
  }

  test('each returns its own pictures while prompts of others fail', async () => {
    let isOver = false;
    const failing = others(() => isOver);
    const results = await Promise.all([
      ...PYTHON.map((library, at) => python(library, at)),
      stableCanvas(PYTHON.length),
    ]).finally(() => (isOver = true));
    const failed = await failing;
    expect(results).toEqual([
      ...PYTHON.map((library, at) => wanted(at, library)),
      wanted(PYTHON.length, 'stable-canvas'),
    ]);
    expect(failed).toEqual(failed.map(() => 'execution_error'));
    expect(failed.length).toBeGreaterThan(0);
  });
});
