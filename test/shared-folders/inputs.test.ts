// --input-directory: a plain folder whose files are v1's inputs.
import { copyFile, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import type { Holdover } from '../support/processes/holdover.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { fill, tempFolder } from '../support/graphs/v1-folders.ts';
import { loading } from '../support/graphs/workflows.ts';
import { filesIn, run, share, textOf, useShared, viewBytes } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });
/** Machines that run tests are busy. */
const PATIENTLY = { timeout: 30_000 };

const KEY = { 'X-API-Key': 'anyone' };

async function offered(server: Holdover, headers: Record<string, string> = {}): Promise<string[]> {
  const info = await getJson(`${server.url}/object_info/LoadImage`, headers);
  return info.LoadImage.input.required.image[0];
}

const listed = ({ url }: Holdover): Promise<string[]> => getJson(`${url}/internal/files/input`);

const viewText = async (...args: Parameters<typeof viewBytes>) =>
  (await viewBytes(...args)).toString();

describe.each(['embedded', 'remote'] as const)('with the %s upstream', (upstream) => {
  const shared = useShared({ upstream });

  test('a dropped file is offered, viewed and loaded by its name at once', async () => {
    const { server, input } = shared;
    await offered(server);
    await fill(input, { 'a cat ü.png': await pngOf(), 'sub/dog.png': await pngOf() });
    expect(await offered(server)).toContain('a cat ü.png');
    expect(await listed(server)).toContain('a cat ü.png [input]');
    expect(await listed(server)).not.toContainEqual(expect.stringContaining('dog'));
    const bytes = await viewBytes(server, { filename: 'a cat ü.png', type: 'input' });
    expect(bytes.equals(await readFile(join(input, 'a cat ü.png')))).toBe(true);
    expect(await run(server, loading('a cat ü.png'))).toHaveLength(1);
    expect(await run(server, loading('sub/dog.png'))).toHaveLength(1);
  });

  test('an upload appears in the folder, and counts on beside what is there', async () => {
    const { server, input } = shared;
    await fill(input, { 'note.txt': 'theirs' });
    const upload = (text: string, fields: Record<string, string> = {}) =>
      uploadInput(server.url, { bytes: Buffer.from(text), name: 'note.txt', fields });
    expect((await upload('ours')).name).toBe('note (1).txt');
    expect((await upload('theirs')).name).toBe('note.txt');
    expect((await upload('deep', { subfolder: 'a/b' })).subfolder).toBe('a/b');
    const notes = (await filesIn(input)).filter((path) => path.includes('note'));
    expect(notes).toEqual(['a/b/note.txt', 'note (1).txt', 'note.txt']);
    expect(await textOf(input, 'note.txt')).toBe('theirs');
    await upload('written over', { overwrite: 'true' });
    expect(await textOf(input, 'note.txt')).toBe('written over');
    expect(await viewText(server, { filename: 'note.txt', type: 'input' })).toBe('written over');
  });

  test('it is the keyless user’s: others neither see its files nor put theirs there', async () => {
    const { server, input } = shared;
    await fill(input, { 'cat.png': await pngOf() });
    // Of the embedded engine's users each has the example.
    expect(await offered(server, KEY)).toEqual(upstream === 'embedded' ? ['example.png'] : []);
    const name = { filename: 'cat.png', type: 'input' };
    expect(await viewText(server, name, KEY)).toBe('status 404');
    const refused = await postPrompt(server.url, { prompt: loading('cat.png') }, { headers: KEY });
    expect(refused.status).toBe(400);
    const before = await filesIn(input);
    await uploadInput(server.url, { bytes: Buffer.from('x'), name: 'mine.txt' }, KEY);
    expect(await filesIn(input)).toEqual(before);
  });
});

describe('a folder', () => {
  const shared = useShared();

  // Wrappers that run beside the server put a file there and name it so; v1 takes the path of any file.
  test('a file of the folder is loaded by its whole path, none of elsewhere', async () => {
    const { server, input } = shared;
    await fill(input, { 'cat.png': await pngOf(), 'sub/dog.png': await pngOf() });
    expect(await run(server, loading(join(input, 'cat.png')))).toHaveLength(1);
    expect(await run(server, loading(join(input, 'sub', 'dog.png')))).toHaveLength(1);
    const elsewhere = await tempFolder('elsewhere');
    await fill(elsewhere, { 'cat.png': await pngOf() });
    for (const path of [join(elsewhere, 'cat.png'), `${input}/../cat.png`, `${input}x/cat.png`])
      expect((await postPrompt(server.url, { prompt: loading(path) })).status).toBe(400);
  });

  test('a file that was changed is read anew, one that was removed is gone', async () => {
    const { server, input } = shared;
    const name = { filename: 'changed.txt', type: 'input' };
    await fill(input, { 'changed.txt': 'one' });
    expect(await viewText(server, name)).toBe('one');
    await fill(input, { 'changed.txt': 'two' });
    expect(await viewText(server, name)).toBe('two');
    await rm(join(input, 'changed.txt'));
    expect(await viewText(server, name)).toBe('status 404');
    expect(await listed(server)).not.toContain('changed.txt [input]');
    await fill(input, { 'changed.txt': 'three' });
    expect(await viewText(server, name)).toBe('three');
  });

  test('nothing outside is read: neither through links nor by names that lead out', async () => {
    const outside = await tempFolder('outside');
    await fill(outside, { 'secret.png': await pngOf() });
    const { server, input } = shared;
    await symlink(join(outside, 'secret.png'), join(input, 'link.png'));
    await symlink(outside, join(input, 'folder'));
    await copyFile(join(outside, 'secret.png'), join(input, 'plain.png'));
    const names = await offered(server);
    expect(names).toContain('plain.png');
    expect(names).not.toContain('link.png');
    for (const image of ['link.png', 'folder/secret.png', `../${outside.slice(5)}/secret.png`]) {
      expect((await postPrompt(server.url, { prompt: loading(image) })).status).toBe(400);
    }
    const view = (query: object) => viewText(server, { type: 'input', ...query });
    expect(await view({ filename: 'link.png' })).toBe('status 404');
    expect(await view({ filename: 'secret.png', subfolder: 'folder' })).toBe('status 404');
  });

  test('an upload to a name that is a link in the folder leaves what the link means alone', async () => {
    const outside = await tempFolder('outside');
    await fill(outside, { 'precious.txt': 'precious' });
    const { server, input } = shared;
    await symlink(join(outside, 'precious.txt'), join(input, 'note.txt'));
    const file = { bytes: Buffer.from('new'), name: 'note.txt' };
    expect((await uploadInput(server.url, file)).name).toBe('note (1).txt');
    await uploadInput(server.url, { ...file, fields: { overwrite: 'true' } });
    expect(await textOf(outside, 'precious.txt')).toBe('precious');
    expect(await textOf(input, 'note.txt')).toBe('new');
  });

  test('whose disk is gone for a while loses nothing', async () => {
    const { server, input } = shared;
    await uploadInput(server.url, { bytes: Buffer.from('kept'), name: 'kept.txt' });
    await rename(input, `${input}-away`);
    expect(await viewText(server, { filename: 'kept.txt', type: 'input' })).toBe('kept');
    expect(await listed(server)).toContain('kept.txt [input]');
    await rename(`${input}-away`, input);
    expect(await viewText(server, { filename: 'kept.txt', type: 'input' })).toBe('kept');
  });

  test('of 1200 files offers each, and copies none before it is asked for', async () => {
    const { server, input, dataDir } = shared;
    const blobs = async () => (await filesIn(dataDir)).filter((path) => path.startsWith('blobs'));
    const before = await blobs();
    const png = await pngOf({ r: 7, g: 7, b: 7 });
    const names = Array.from({ length: 1200 }, (_, i) => `tom ${String(i).padStart(4, '0')}.png`);
    await fill(input, Object.fromEntries(names.map((name) => [name, png])));
    expect((await offered(server)).filter((name) => name.startsWith('tom'))).toEqual(names);
    expect(await blobs()).toEqual(before);
  });
});

test('uploads from before the folder was named appear in it, files that are there stay', async () => {
  const first = await share();
  await uploadInput(first.server.url, { bytes: Buffer.from('early'), name: 'early.txt' });
  await uploadInput(first.server.url, { bytes: Buffer.from('ours'), name: 'both.txt' });
  await first.server.terminate();
  const input = await tempFolder('another');
  await fill(input, { 'both.txt': 'theirs' });
  const { server } = await share({ ...first, input });
  await expect.poll(() => filesIn(input), PATIENTLY).toEqual(['both.txt', 'early.txt']);
  expect(await textOf(input, 'early.txt')).toBe('early');
  expect(await viewText(server, { filename: 'both.txt', type: 'input' })).toBe('theirs');
  await rm(join(input, 'early.txt'));
  await server.terminate();
  const again = await share({ ...first, input });
  expect(await viewText(again.server, { filename: 'early.txt', type: 'input' })).toBe('status 404');
  expect(await filesIn(input)).toEqual(['both.txt']);
});

test('an upload the disk has no room for is answered, used, and written when there is', async () => {
  const first = await share();
  await writeFile(join(first.input, 'sub'), 'in the way');
  const fields = { subfolder: 'sub' };
  const png = await pngOf();
  await uploadInput(first.server.url, { bytes: png, name: 'cat.png', fields });
  expect(await run(first.server, loading('sub/cat.png'))).toHaveLength(1);
  await first.server.kill9();
  await rm(join(first.input, 'sub'));
  const { server } = await share(first);
  await expect.poll(() => filesIn(first.input), PATIENTLY).toEqual(['sub/cat.png']);
  expect(await run(server, loading('sub/cat.png'))).toHaveLength(1);
});
