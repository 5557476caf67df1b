import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  entryOf,
  formatOf,
  pngOf,
  pngText,
  uploadInput,
} from '../support/clients/client-helpers.ts';
import { loading } from '../support/graphs/workflows.ts';
import { type Stack, notRun, openStack } from './open.ts';

// The real self-hosted server percent-encodes the names of uploads, and they lie in secret folders.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(notRun !== '')(`prompts in pictures behind comfy-api-proxy${notRun}`, () => {
  let stack: Stack;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdover-outputs-'));
    stack = await openStack({ args: ['--output-directory', folder] });
  });
  afterAll(async () => {
    await stack?.close();
    await rm(folder, { recursive: true, force: true });
  });

  // The engine knows pictures by their bytes, and runs nothing twice.
  test.each([
    ['lab up.png', 10],
    ['100% (é) 😀.png', 20],
    ['a%20b.png', 30],
    ['plain.png', 40],
  ])('name %s as its client did', async (name, r) => {
    const { url } = stack.holdover;
    await uploadInput(url, { bytes: await pngOf({ r, g: 0, b: 0 }), name });
    const graph = loading(name, 'made');
    const id = await stack.post(graph);
    await vi.waitUntil(() => entryOf(url, id), { timeout: 30_000 });
    const [file] = (await entryOf(url, id)).outputs['9'].images;
    const query = `/view?${new URLSearchParams(file).toString()}`;
    const bytesOf = async (base: string, headers: Record<string, string> = {}) =>
      Buffer.from(await (await fetch(base + query, { headers })).arrayBuffer());

    const bytes = await bytesOf(url);
    expect(JSON.parse(pngText(bytes, 'prompt') ?? '')['3'].inputs.image).toBe(name);
    expect(await formatOf(bytes)).toBe('png 30x20');

    const stored = await bytesOf(stack.engine.url);
    expect(pngText(stored, 'prompt')).toMatch(/"holdover-[0-9a-f]{16}\//);
    expect(bytes.length).toBe(stored.length);
    const pixels = bytes.indexOf('IDAT');
    expect(bytes.subarray(pixels).equals(stored.subarray(pixels))).toBe(true);

    const part = await bytesOf(url, { Range: `bytes=60-${pixels - 10}` });
    expect(part.equals(bytes.subarray(60, pixels - 9))).toBe(true);

    expect((await readFile(join(folder, file.filename))).equals(bytes)).toBe(true);
    // Its history tells how the client wrote the name; without it the name is the uploaded one.
    await fetch(`${url}/history`, { method: 'POST', body: JSON.stringify({ delete: [id] }) });
    expect((await bytesOf(url)).equals(bytes)).toBe(true);
  });
});
