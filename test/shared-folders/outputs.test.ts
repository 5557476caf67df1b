// --output-directory: what prompts make lies in a plain folder as well, under v1's names.
import { readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { connect, getJson, postPrompt } from '../support/clients/v1-client.ts';
import { fill, tempFolder } from '../support/graphs/v1-folders.ts';
import { flat } from '../support/graphs/workflows.ts';
import { filesIn, run, share, textOf, useShared, viewBytes } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });
/** Machines that run tests are busy. */
const PATIENTLY = { timeout: 30_000 };

describe.each(['embedded', 'remote'] as const)('with the %s upstream', (upstream) => {
  const shared = useShared({ upstream });

  test('an output is there under its name and subfolder when its prompt has ended', async () => {
    const { server, output } = shared;
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

describe('a folder', () => {
  const shared = useShared();

  test('gets only files of the keyless user; previews never', async () => {
    const { server, output } = shared;
    const key = { 'X-API-Key': 'anyone' };
    await run(server, flat({ prefix: 'theirs' }), key);
    await run(server, flat({ color: 3, class_type: 'PreviewImage' }));
    expect(await filesIn(output)).toEqual([]);
    await fill(output, { 'flat_00007_.png': 'not theirs' });
    const [image] = await run(server, flat(), key);
    expect(image?.filename).toBe('flat_00001_.png');
  });

  test('keeps files that are there: they are never written over, their names are taken', async () => {
    const { server, output } = shared;
    await fill(output, { 'mine_00001_.png': 'not ours', 'day/mine_00001_.png': 'not ours' });
    const [first] = await run(server, flat({ prefix: 'mine' }));
    const [second] = await run(server, flat({ prefix: 'day/mine' }));
    expect([first?.filename, second?.filename]).toEqual(['mine_00002_.png', 'mine_00002_.png']);
    expect(await textOf(output, 'mine_00001_.png')).toBe('not ours');
    expect(await textOf(output, 'day/mine_00001_.png')).toBe('not ours');
  });

  test('counts on after its highest number, as on the v1 server', async () => {
    const { server, output } = shared;
    await fill(output, { 'many_00003_.png': '', 'many_00041_.webp': '', 'many_x.png': '' });
    const [image] = await run(server, flat({ prefix: 'many' }));
    expect(image?.filename).toBe('many_00042_.png');
  });

  test('with a link in it leads nowhere: nothing is written outside', async () => {
    const outside = await tempFolder('outside');
    const { server, output } = shared;
    await symlink(outside, join(output, 'link'));
    await run(server, flat({ prefix: 'link/flat' }));
    await run(server, flat({ color: 2, prefix: 'beside' }));
    expect(await filesIn(outside)).toEqual([]);
    expect(await filesIn(output)).toContain('beside_00001_.png');
  });

  test('gets an upload of type output as well, which overwrites when it is told to', async () => {
    const { server, output } = shared;
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

test('after a restart what was removed does not come back, and what had no room comes', async () => {
  const first = await share();
  const [removed = {}] = await run(first.server, flat());
  await rm(join(first.output, 'flat_00001_.png'));
  // Stands for a disk that is full: nothing can be made below it. It costs no job.
  await writeFile(join(first.output, 'day'), 'in the way');
  const [late = {}] = await run(first.server, flat({ prefix: 'day/flat' }));
  expect((await viewBytes(first.server, late)).subarray(1, 4).toString()).toBe('PNG');
  expect(first.server.log()).toContain('could not be written to its folder, trying again later');
  expect(await filesIn(first.output)).toEqual(['day']);
  await first.server.kill9();
  await rm(join(first.output, 'day'));
  const { server } = await share(first);
  await expect.poll(() => filesIn(first.output), PATIENTLY).toEqual(['day/flat_00001_.png']);
  await run(server, flat({ prefix: 'next' }));
  expect(await filesIn(first.output)).toEqual(['day/flat_00001_.png', 'next_00001_.png']);
  expect((await viewBytes(server, removed)).subarray(1, 4).toString()).toBe('PNG');
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
