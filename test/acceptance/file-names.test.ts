// Names of files that clients write in other forms than the stored one.
import { describe, expect, test, vi } from 'vitest';
import { pngOf } from '../support/clients/client-helpers.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const server = useHoldover();

async function send(
  route: 'image' | 'mask',
  filename: string,
  fields: Record<string, string> = {},
): Promise<{ status: number; json: any }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  form.append('image', new Blob([new Uint8Array(await pngOf())]), filename);
  const answer = await fetch(`${server.url}/upload/${route}`, { method: 'POST', body: form });
  return { status: answer.status, json: await answer.json() };
}

async function view(query: Record<string, string>): Promise<number> {
  const search = new URLSearchParams({ type: 'input', ...query }).toString();
  return (await fetch(`${server.url}/view?${search}`)).status;
}

async function ended(id: string): Promise<any> {
  const url = `${server.url}/history/${id}`;
  await expect.poll(() => getJson(url), { timeout: 30_000 }).toHaveProperty([id]);
  return (await getJson(url))[id];
}

describe('a filename_prefix', () => {
  test.each([
    ['My project /img', 'My project_', 'img_00001_.png'],
    ['.hid/x', '_hid', 'x_00001_.png'],
    ['sib/aux.d/x', 'sib/aux_.d', 'x_00001_.png'],
    ['con/x', 'con_', 'x_00001_.png'],
    ['v1. /y', 'v1__', 'y_00001_.png'],
    ['a\\b/z', 'a/b', 'z_00001_.png'],
  ])('%s is saved in %s', async (prefix, subfolder, filename) => {
    const { body } = await postPrompt(server.url, { prompt: flat({ prefix }) });
    const { outputs } = await ended(body.prompt_id);
    const file = { filename, subfolder, type: 'output' };
    expect(outputs['9'].images).toMatchObject([file]);
    expect(await view(file)).toBe(200);
  });
});

describe('an upload', () => {
  test.each(['a\\b', 'a/b ', 'a\\b\\', 'a /b'])(
    'to the folder %j is found there, however the folder is written',
    async (subfolder) => {
      const name = `${Buffer.from(subfolder).toString('hex')}.png`;
      expect(await send('image', name, { subfolder })).toMatchObject({
        status: 200,
        json: { name, subfolder, type: 'input' },
      });
      for (const each of [subfolder, 'a/b', 'a\\b', 'a/b '])
        expect(await view({ filename: name, subfolder: each })).toBe(200);
      expect(await view({ filename: `a\\b\\${name}`, subfolder })).toBe(200);
      for (const image of [`${subfolder}/${name}`, `a\\b\\${name}`]) {
        const load = { class_type: 'LoadImage', inputs: { image } };
        const save = { class_type: 'PreviewImage', inputs: { images: ['1', 0] } };
        const { body } = await postPrompt(server.url, { prompt: { '1': load, '2': save } });
        const { status, prompt } = await ended(body.prompt_id);
        expect(status.status_str).toBe('success');
        expect(prompt[2]['1'].inputs.image).toBe(image);
      }
    },
  );

  test('of a mask whose original does not exist is a 400, and nothing is stored', async () => {
    await send('image', 'clip.png');
    const refs = [
      { filename: 'none.png', type: 'input' },
      { filename: 'clip.png', type: null },
      { filename: '../clip.png', type: 'input' },
    ];
    for (const ref of refs) {
      const sent = await send('mask', 'mask.png', { original_ref: JSON.stringify(ref) });
      expect(sent).toMatchObject({ status: 400, json: { error: { type: 'invalid_upload' } } });
    }
    expect(await view({ filename: 'mask.png' })).toBe(404);
  });

  test('of a mask finds its original by a path with backslashes', async () => {
    await send('image', 'below.png', { subfolder: 'p/q' });
    const original_ref = JSON.stringify({ filename: 'p\\q\\below.png', type: 'input' });
    expect((await send('mask', 'found.png', { original_ref })).status).toBe(200);
  });
});

test('a slash that is encoded twice is a slash in the name of a saved file', async () => {
  const at = (path: string, init?: RequestInit) => fetch(`${server.url}/api/userdata${path}`, init);
  const body = '{"a":1}';
  const saved = await at('/workflows%252Fy.json?overwrite=true', { method: 'POST', body });
  expect(await saved.json()).toBe('workflows/y.json');
  expect(await getJson(`${server.url}/api/userdata?dir=workflows`)).toEqual(['y.json']);
  expect(await (await at('/workflows%2Fy.json')).text()).toBe(body);
  expect(await (await at('/workflows%252fy.json')).text()).toBe(body);
  const move = '/workflows%252Fy.json/move/workflows%252Fz.json';
  expect(await (await at(move, { method: 'POST' })).json()).toBe('workflows/z.json');
  // A percent sign stays one.
  await at('/100%2525.json', { method: 'POST', body });
  expect(await getJson(`${server.url}/api/userdata?dir=.`)).toContain('100%25.json');
  expect((await at('/..%252F..%252Fx.json')).status).toBe(403);
});
