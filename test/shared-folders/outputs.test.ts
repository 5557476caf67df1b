// --output-directory: what prompts make lies in a plain folder as well, under v1's names.
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { fill, tempFolder } from '../support/graphs/v1-folders.ts';
import { flat } from '../support/graphs/workflows.ts';
import { filesIn, run, share, textOf, viewBytes } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });
/** Machines that run tests are busy. */
const PATIENTLY = { timeout: 30_000 };

describe.each(['embedded', 'remote'] as const)('with the %s upstream', (upstream) => {
  test('an output is there under its name and subfolder when its prompt has ended', async () => {
    const { server, output } = await share({}, { upstream });
    const made = [
      ...(await run(server, flat({ prefix: 'a day/ünï' }))),
      ...(await run(server, flat({ color: 1, prefix: 'plain' }))),
    ];
    expect(await filesIn(output)).toEqual(['a day/ünï_00001_.png', 'plain_00001_.png']);
    for (const image of made) {
      const bytes = await readFile(join(output, image.subfolder, image.filename));
      expect(bytes.equals(await viewBytes(server, image))).toBe(true);
    }
  });
});

test('files that are there are never written over: their names are taken', async () => {
  const { server, output } = await share();
  await fill(output, { 'flat_00001_.png': 'not ours', 'day/flat_00001_.png': 'not ours' });
  const [first] = await run(server, flat());
  const [second] = await run(server, flat({ prefix: 'day/flat' }));
  expect([first?.filename, second?.filename]).toEqual(['flat_00002_.png', 'flat_00002_.png']);
  expect(await textOf(output, 'flat_00001_.png')).toBe('not ours');
  expect(await textOf(output, 'day/flat_00001_.png')).toBe('not ours');
});

test('only files of the keyless user; previews never', async () => {
  const { server, output } = await share();
  const key = { 'X-API-Key': 'anyone' };
  await run(server, flat({ prefix: 'theirs' }), key);
  await run(server, flat({ color: 3, class_type: 'PreviewImage' }));
  expect(await filesIn(output)).toEqual([]);
  await fill(output, { 'flat_00007_.png': 'not theirs' });
  const [image] = await run(server, flat(), key);
  expect(image?.filename).toBe('flat_00001_.png');
});

test('the counter goes on after the highest number in the folder, as on the v1 server', async () => {
  const { server, output } = await share();
  await fill(output, { 'flat_00003_.png': '', 'flat_00041_.webp': '', 'flat_x.png': '' });
  const [image] = await run(server, flat());
  expect(image?.filename).toBe('flat_00042_.png');
});

test('killed between the end of a job and its file: the next start makes up for it', async () => {
  const first = await share({}, { env: { HOLDOVER_CRASH_AT: 'folder-owed' } });
  const client = await connect(first.server.wsUrl).catch(() => undefined);
  await postPrompt(first.server.url, { prompt: flat(), prompt_id: 'cut-off' });
  await expect.poll(() => isRunning(first.server.pid), PATIENTLY).toBe(false);
  await client?.close().catch(() => {});
  expect(await filesIn(first.output)).toEqual([]);
  const { server } = await share(first);
  const history = () => getJson(`${server.url}/history/cut-off`);
  await expect.poll(history, PATIENTLY).toHaveProperty('cut-off');
  // A job whose end was not recorded either runs once more, and its file has the next number.
  const { images } = (await history())['cut-off'].outputs['9'];
  await expect.poll(() => filesIn(first.output), PATIENTLY).toEqual([images[0].filename]);
});

test('what was removed from the folder does not come back, and can be viewed still', async () => {
  const first = await share();
  const [image = {}] = await run(first.server, flat());
  await rm(join(first.output, 'flat_00001_.png'));
  await first.server.terminate();
  const { server } = await share(first);
  await run(server, flat({ prefix: 'next' }));
  expect(await filesIn(first.output)).toEqual(['next_00001_.png']);
  expect((await viewBytes(server, image)).subarray(1, 4).toString()).toBe('PNG');
});

test('a folder that cannot be written to costs no job; the file comes once it can', async () => {
  const first = await share();
  // Stands for a disk that is full: nothing can be made below it.
  await writeFile(join(first.output, 'day'), 'in the way');
  const [image = {}] = await run(first.server, flat({ prefix: 'day/flat' }));
  expect((await viewBytes(first.server, image)).subarray(1, 4).toString()).toBe('PNG');
  expect(first.server.log()).toContain('could not be written to its folder, trying again later');
  expect(await filesIn(first.output)).toEqual(['day']);
  await first.server.kill9();
  await rm(join(first.output, 'day'));
  await share(first);
  await expect.poll(() => filesIn(first.output), PATIENTLY).toEqual(['day/flat_00001_.png']);
});

test('a link in the folder leads nowhere: nothing is written outside', async () => {
  const outside = await tempFolder('outside');
  const { server, output } = await share();
  await symlink(outside, join(output, 'day'));
  await run(server, flat({ prefix: 'day/flat' }));
  await run(server, flat({ color: 2, prefix: 'flat' }));
  expect(await filesIn(outside)).toEqual([]);
  expect(await filesIn(output)).toEqual(['flat_00001_.png']);
});

test('an upload of type output is there as well, and overwrites when it is told to', async () => {
  const { server, output } = await share();
  const upload = async (text: string, overwrite: string) => {
    const form = new FormData();
    form.append('image', new Blob([text]), 'note.txt');
    form.append('type', 'output');
    form.append('overwrite', overwrite);
    const answer = await fetch(`${server.url}/upload/image`, { method: 'POST', body: form });
    return ((await answer.json()) as { name: string }).name;
  };
  await fill(output, { 'note.txt': 'another writer' });
  expect(await upload('first', 'false')).toBe('note (1).txt');
  expect(await upload('second', 'true')).toBe('note.txt');
  expect(await textOf(output, 'note (1).txt')).toBe('first');
  expect(await textOf(output, 'note.txt')).toBe('second');
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
