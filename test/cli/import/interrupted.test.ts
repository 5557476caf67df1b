// An import that was cut off goes on where it stopped; large and many files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { fill, snapshot } from '../../support/graphs/v1-folders.ts';
import { folders, importFrom, recorded, serve, viewText } from './open.ts';
import { residentMb } from '../../support/processes/resident-memory.ts';

vi.setConfig({ testTimeout: 120_000 });
/** Machines that run tests are busy. */
const PATIENTLY = { timeout: 30_000 };

const MAIN = fileURLToPath(new URL('../../../dist/main.js', import.meta.url));
const MEBIBYTE = 1024 * 1024;

function many(count: number): { [path: string]: string } {
  const names = Array.from({ length: count }, (_, i) => String(i + 1).padStart(5, '0'));
  return Object.fromEntries(names.map((n) => [`output/many/ComfyUI_${n}_.txt`, `file ${n}`]));
}

async function blobsIn(dataDir: string): Promise<number> {
  const entries = await readdir(join(dataDir, 'blobs'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

test.each([
  ['before a record is written', 'import-bytes', 0],
  ['after the first records', 'import-recorded:1', 64],
])('killed %s, run again: everything is there once', async (_, moment, before) => {
  const { source, dataDir } = await folders();
  await fill(source, { ...many(200), 'user/default/workflows/w.json': '{}' });
  const untouched = await snapshot(source);
  const killed = await importFrom(source, dataDir, { env: { HOLDOVER_CRASH_AT: moment } });
  expect([killed.code, killed.stdout]).toEqual([null, '']);
  expect((await recorded(dataDir)).names).toHaveLength(before);
  const { code, stdout } = await importFrom(source, dataDir);
  expect(code).toBe(0);
  expect(stdout).toContain(`Inputs and outputs: ${200 - before} files`);
  const { names, assets } = await recorded(dataDir);
  expect([names.length, assets.length, await blobsIn(dataDir)]).toEqual([200, 200, 200]);
  expect(await readdir(join(dataDir, 'spool'))).toEqual([]);
  expect(await snapshot(source)).toEqual(untouched);
});

test('a file of 128 MB is not held in memory', async () => {
  const { source, dataDir } = await folders();
  await mkdir(join(source, 'output'), { recursive: true });
  const large = await open(join(source, 'output/large.bin'), 'w');
  await large.truncate(128 * MEBIBYTE);
  await large.close();
  const child = spawn(
    process.execPath,
    [MAIN, 'import', source, '--data-dir', dataDir, '--max-upload-size', '400'],
    { stdio: 'ignore' },
  );
  const exited = once(child, 'exit');
  let mostMb = 0;
  const watch = setInterval(() => (mostMb = Math.max(mostMb, residentMb(child))), 20);
  expect(await exited).toEqual([0, null]);
  clearInterval(watch);
  expect(mostMb).toBeGreaterThan(30);
  expect(mostMb).toBeLessThan(180);
  expect((await recorded(dataDir)).names).toMatchObject([{ sizeBytes: 128 * MEBIBYTE }]);
});

test('new results go when the disk budget is used up, imported files never; a start warns when these alone use it up', async () => {
  const { source, dataDir } = await folders();
  await mkdir(join(source, 'output'), { recursive: true });
  await writeFile(join(source, 'output/large.bin'), Buffer.alloc(17 * MEBIBYTE, 'x'));
  await importFrom(source, dataDir);
  const server = await serve(dataDir, ['--disk-budget', '16']);
  const warning = 'imported files alone use up --disk-budget';
  await expect.poll(() => server.log(), PATIENTLY).toContain(warning);
  const form = new FormData();
  form.append('image', new Blob([Buffer.alloc(5 * MEBIBYTE, 'y')]), 'surplus.bin');
  expect((await fetch(`${server.url}/upload/image`, { method: 'POST', body: form })).status).toBe(
    200,
  );
  await server.terminate();
  // The first sweep comes with the start.
  const next = await serve(dataDir, ['--disk-budget', '20']);
  const isThere = async (filename: string, type: string) =>
    (await fetch(`${next.url}/view?${new URLSearchParams({ filename, type })}`)).status;
  await expect.poll(() => isThere('surplus.bin', 'input'), PATIENTLY).toBe(404);
  expect(await viewText(next, { filename: 'large.bin' })).toHaveLength(17 * MEBIBYTE);
  expect(next.log()).not.toContain(warning);
});
