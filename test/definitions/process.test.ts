import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { growing } from '../support/graphs/workflows.ts';
import { origin } from './open.ts';
import { CHOOSER, type Hook, classes, honest, status } from './origin.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

async function start(options: Parameters<typeof startHoldover>[0]): Promise<Holdover> {
  const holdover = await startHoldover(options);
  onTestFinished(() => holdover.dispose());
  return holdover;
}

/** An upstream of which only the definitions matter here. */
function upstream(definitions: Hook): Hook {
  return (req, res) =>
    req.url === '/api/object_info' ? definitions(req, res) : status(404)(req, res);
}

type Seen = { readonly status: number; readonly names: string[]; readonly headers: Headers };

async function look(url: string, headers: Record<string, string> = {}): Promise<Seen> {
  const response = await fetch(`${url}/object_info`, { headers });
  const body = (await response.json()) as object;
  return { status: response.status, names: Object.keys(body), headers: response.headers };
}

const theirs = { ...classes('Theirs'), LoadImage: CHOOSER };

test('the upstream’s definitions are served, after kill -9 and without the upstream as well', async () => {
  const there = await origin(upstream(honest(theirs)));
  const args = ['--upstream', there.url];
  const holdover = await start({ args });
  const before = await look(holdover.url);
  expect([before.status, before.names]).toEqual([200, ['Theirs', 'LoadImage']]);
  expect(before.headers.get('warning')).toBeNull();
  // Written in the background, and there under its name when it is whole.
  const kept = () => readdir(join(holdover.dataDir, 'object-info')).catch(() => []);
  await expect.poll(kept).toEqual(['definitions.json']);
  await holdover.kill9();
  await there.close();
  const restarted = await start({ args, dataDir: holdover.dataDir });
  const after = await look(restarted.url);
  expect([after.status, after.names]).toEqual([200, before.names]);
  expect(after.headers.get('etag')).toBe(before.headers.get('etag'));
  expect(after.headers.get('warning')).toBe('110 holdover "Response is Stale"');
});

test('with the upstream down at the start everything else works, and definitions once it is up', async () => {
  const there = await origin(upstream(honest(theirs)));
  await there.close();
  const holdover = await start({ args: ['--upstream', there.url] });
  for (const path of ['/system_stats', '/queue', '/history', '/settings']) {
    expect((await fetch(holdover.url + path)).status).toBe(200);
  }
  const missing = await look(holdover.url);
  expect([missing.status, missing.headers.get('retry-after')]).toEqual([503, '5']);
  await origin(upstream(honest(theirs)), there.port);
  await expect
    .poll(async () => (await look(holdover.url)).status, { timeout: 10_000, interval: 500 })
    .toBe(200);
});

test('programs are shown the classes of text-to-image graphs, without a model as in v1, and pages what runs', async () => {
  const holdover = await start({});
  const [program, page] = [
    await look(holdover.url),
    await look(holdover.url, { 'Comfy-User': '' }),
  ];
  const described = ['CheckpointLoaderSimple', 'LoraLoader', 'KSampler', 'CLIPTextEncode'];
  expect(described.filter((name) => !program.names.includes(name))).toEqual([]);
  expect(described.filter((name) => page.names.includes(name))).toEqual([]);
  const ofClass = async (name: string): Promise<any> =>
    (await (await fetch(`${holdover.url}/object_info/${name}`)).json())[name];
  const { input } = await ofClass('KSampler');
  expect(input.required.sampler_name[0]).toContain('dpmpp_2m');
  expect((await ofClass('CheckpointLoaderSimple')).input.required.ckpt_name[0]).toEqual([]);
  const graph = { 1: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'a' } } };
  const body = JSON.stringify({ prompt: graph });
  const refused = await fetch(`${holdover.url}/prompt`, { method: 'POST', body });
  expect(refused.status).toBe(400);
});

test('a file of definitions is followed, and a broken one refuses no prompt', async () => {
  const path = join(await tempFolder('definitions'), 'nodes.json');
  await writeFile(path, JSON.stringify(theirs));
  // Its own engine runs the prompt, whatever the file says.
  const holdover = await start({ args: ['--object-info', path], upstream: 'embedded' });
  expect((await look(holdover.url)).names).toEqual(Object.keys(theirs));
  await writeFile(path, JSON.stringify(classes('Other')));
  expect((await look(holdover.url)).names).toEqual(['Other']);
  await holdover.kill9();
  await writeFile(path, '{"Other":');
  const restarted = await start({
    args: ['--object-info', path],
    upstream: 'embedded',
    dataDir: holdover.dataDir,
  });
  expect((await look(restarted.url)).status).toBe(503);
  const { status: accepted } = await postPrompt(restarted.url, { prompt: growing({ steps: 1 }) });
  expect(accepted).toBe(200);
});
