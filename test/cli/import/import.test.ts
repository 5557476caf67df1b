// holdover import DIR: what a v1 server had is there under the same names.
import { mkdtemp, readdir, rm, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { entryOf, pngOf } from '../../support/clients/client-helpers.ts';
import { type Holdover, runHoldover, startHoldover } from '../../support/processes/holdover.ts';
import { connect, getJson, postPrompt } from '../../support/clients/v1-client.ts';
import { fill, snapshot } from '../../support/graphs/v1-folders.ts';
import { flat, loading } from '../../support/graphs/workflows.ts';
import { folders, importFrom, recorded, serve, viewText } from './open.ts';

vi.setConfig({ testTimeout: 120_000 });

describe('what was there is there', () => {
  let root: string;
  let server: Holdover;
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'holdover-import-'));
    const [source, dataDir] = [join(root, 'v1'), join(root, 'data')];
    const picture = await pngOf();
    await fill(source, {
      'input/cat.txt': 'cat',
      'input/cat.png': picture,
      'input/a folder/ünï cödé 猫.txt': 'deep',
      'output/2024/ComfyUI_00012_.txt': 'old',
      'output/ComfyUI_00041_.png': picture,
      'output/ComfyUI_00007_.png': picture,
      'output/day/ComfyUI_00003_.png': picture,
      'output/flat_00001_.png': 'the old one',
      'user/default/comfy.settings.json':
        '{"Comfy.Look": "dark", "Comfy.Seed": 18446744073709551615}',
      'user/default/workflows/my flow.json': '{"nodes":[]}',
      'user/default/workflows/.index.json': '{}',
    });
    await utimes(join(source, 'input/cat.txt'), 1_600_000_000, 1_600_000_000);
    expect((await runHoldover(['import', source, '--data-dir', dataDir])).code).toBe(0);
    server = await startHoldover({ dataDir });
  });
  afterAll(async () => {
    await server.dispose();
    await rm(root, { recursive: true });
  });

  /** The names of the files that prompts save, one after the other. */
  async function saved(prompts: readonly object[]): Promise<readonly string[]> {
    const client = await connect(server.wsUrl);
    const names = [];
    for (const prompt of prompts) {
      const { body } = await postPrompt(server.url, { prompt, client_id: 'test-client' });
      await client.untilDone(body.prompt_id);
      const { outputs } = await entryOf(server.url, body.prompt_id);
      names.push(Object.values<any>(outputs)[0].images[0].filename);
    }
    await client.close();
    return names;
  }

  test('inputs and outputs by their names and subfolders, with their times', async () => {
    const cat = await fetch(`${server.url}/view?filename=cat.txt&type=input`);
    expect(cat.headers.get('Last-Modified')).toBe('Sun, 13 Sep 2020 12:26:40 GMT');
    expect(await cat.text()).toBe('cat');
    const deep = { filename: 'ünï cödé 猫.txt', subfolder: 'a folder', type: 'input' };
    expect(await viewText(server, deep)).toBe('deep');
    const old = { filename: 'ComfyUI_00012_.txt', subfolder: '2024' };
    expect(await viewText(server, old)).toBe('old');
  });

  test('LoadImage offers and loads the pictures, the output counter goes on after the highest', async () => {
    const info = await getJson(`${server.url}/object_info/LoadImage`);
    expect(info.LoadImage.input.required.image[0]).toEqual(['cat.png', 'example.png']);
    const prefixes = ['ComfyUI', 'day/ComfyUI', 'new'];
    const names = await saved(prefixes.map((prefix) => loading('cat.png', prefix)));
    expect(names).toEqual(['ComfyUI_00042_.png', 'ComfyUI_00004_.png', 'new_00001_.png']);
  });

  test('an output is found although a prompt uses its name again', async () => {
    expect(await saved([flat({ prefix: 'flat' })])).toEqual(['flat_00002_.png']);
    expect(await viewText(server, { filename: 'flat_00001_.png' })).toBe('the old one');
  });

  test('settings with every digit, workflows and other saved files', async () => {
    const settings = await fetch(`${server.url}/settings`);
    expect(await settings.text()).toBe(
      '{"Comfy.Look": "dark", "Comfy.Seed": 18446744073709551615}',
    );
    const flow = await fetch(`${server.url}/userdata/workflows%2Fmy%20flow.json`);
    expect(await flow.text()).toBe('{"nodes":[]}');
    expect(await getJson(`${server.url}/userdata?dir=workflows`)).toEqual(['my flow.json']);
    expect(await getJson(`${server.url}/userdata/workflows%2F.index.json`)).toEqual({});
    expect((await fetch(`${server.url}/userdata/comfy.settings.json`)).status).toBe(404);
  });

  test('for the keyless user alone: a caller with a key sees none of it', async () => {
    const headers = { 'X-API-Key': 'anyone' };
    const view = await fetch(`${server.url}/view?filename=cat.png&type=input`, { headers });
    expect(view.status).toBe(404);
    const info = await getJson(`${server.url}/object_info/LoadImage`, headers);
    expect(info.LoadImage.input.required.image[0]).toEqual(['example.png']);
    expect(await getJson(`${server.url}/settings`, headers)).toEqual({});
    const file = await fetch(`${server.url}/userdata/workflows%2Fmy%20flow.json`, { headers });
    expect(file.status).toBe(404);
  });

  test('of several users `default`; the others are named, and --user picks one', async () => {
    const { source, dataDir } = await folders();
    await fill(source, {
      'user/users.json': '{"default":"default","bob_1a2b":"Bob"}',
      'user/default/comfy.settings.json': '{"who":"default"}',
      'user/bob_1a2b/comfy.settings.json': '{"who":"bob"}',
      'user/__manager/cache.json': '{}',
    });
    const first = await importFrom(source, dataDir);
    expect(first.stdout).toContain('User Bob (bob_1a2b) was left: --user bob_1a2b imports it.');
    expect(first.stdout).not.toContain('__manager');
    const { dataDir: another } = await folders();
    await importFrom(source, another, { args: ['--user', 'bob_1a2b'] });
    const server = await serve(another);
    expect(await getJson(`${server.url}/settings`)).toEqual({ who: 'bob' });
    const refused = await importFrom(source, another, { args: ['--user', 'carl'] });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      'error: there is no user carl; there are: bob_1a2b, default\n',
    ]);
  });
});

describe('what is left out is named', () => {
  test('unsafe names, links that leave, special files and large ones; nothing of the source changes', async () => {
    const { source, dataDir } = await folders();
    await fill(source, {
      'secret.txt': 'secret',
      'input/good.txt': 'good',
      'input/.hidden': 'x',
      'input/esc\u001b[31m.txt': 'x',
      'input/con.txt': 'x',
      'input/.git/config': 'x',
      'output/large.bin': '',
    });
    await truncate(join(source, 'output/large.bin'), 3 * 1024 * 1024);
    await symlink('../secret.txt', join(source, 'input/leaves.txt'));
    await symlink('good.txt', join(source, 'input/stays.txt'));
    await symlink('.', join(source, 'input/loop'));
    await symlink('nothing', join(source, 'input/dangling'));
    const before = await snapshot(source);
    const { code, stdout } = await importFrom(source, dataDir, {
      args: ['--max-upload-size', '2'],
    });
    expect(code).toBe(0);
    expect(stdout).toContain(`Left out:
  input/.git/: unsafe name
  input/.hidden: unsafe name
  input/con.txt: unsafe name
  input/dangling: a link to nothing
  input/esc\\u{1b}[31m.txt: unsafe name
  input/leaves.txt: a link that leaves the folder
  input/loop: a link to something else than a file
  output/large.bin: larger than --max-upload-size
`);
    const { names } = await recorded(dataDir);
    expect(names.map(({ filename }) => filename).toSorted()).toEqual(['good.txt', 'stays.txt']);
    expect(await snapshot(source)).toEqual(before);
  });

  test('a name that is no text', async () => {
    const { source, dataDir } = await folders();
    await fill(source, { 'input/good.txt': 'good' });
    await writeFile(Buffer.concat([Buffer.from(`${source}/input/`), Buffer.from([0xff])]), 'x');
    const { stdout } = await importFrom(source, dataDir);
    expect(stdout).toContain('Left out:\n  input/\ufffd: unsafe name\n');
  });

  test('a name that means another file here keeps its meaning', async () => {
    const { source, dataDir } = await folders();
    await fill(source, {
      'input/a.txt': 'first',
      'user/default/comfy.settings.json': '{"a":1,"b":1}',
      'user/default/workflows/w.json': '{"v":1}',
    });
    await importFrom(source, dataDir);
    await fill(source, {
      'input/a.txt': 'second, and longer',
      'user/default/comfy.settings.json': '{"a":2,"c":2}',
      'user/default/workflows/w.json': '{"v":2000}',
    });
    const { stdout } = await importFrom(source, dataDir);
    expect(stdout).toContain('input/a.txt: the name means another file here');
    expect(stdout).toContain(
      'user/default/workflows/w.json: something of this name is here already',
    );
    expect(stdout).toContain('1 setting (1 more are set here already)');
    const server = await serve(dataDir);
    expect(await viewText(server, { filename: 'a.txt', type: 'input' })).toBe('first');
    expect(await getJson(`${server.url}/settings`)).toEqual({ a: 1, b: 1, c: 2 });
  });

  test('settings that are no JSON are reported, and the exit code says that something is missing', async () => {
    const { source, dataDir } = await folders();
    await fill(source, { 'user/default/comfy.settings.json': '{oops', 'input/a.txt': 'a' });
    const { code, stdout } = await importFrom(source, dataDir);
    expect(code).toBe(1);
    expect(stdout).toContain('comfy.settings.json: is no JSON');
    expect((await recorded(dataDir)).names).toHaveLength(1);
  });
});

describe('before it begins', () => {
  test('a running server is reported, and nothing is imported', async () => {
    const { source, dataDir } = await folders();
    await fill(source, { 'input/a.txt': 'a' });
    const server = await serve(dataDir);
    const { code, stderr } = await importFrom(source, dataDir);
    expect(code).toBe(1);
    expect(stderr).toContain('is in use by another Holdover: stop it');
    expect(await viewText(server, { filename: 'a.txt', type: 'input' })).toBe('status 404');
  });

  test.each([
    ['a folder that is not there', 'nowhere'],
    ['a folder without any of the three', '.'],
  ])('%s is refused', async (_, below) => {
    const { source, dataDir } = await folders();
    const { code, stderr } = await importFrom(join(source, below), dataDir);
    expect(code).toBe(2);
    expect(stderr).toMatch(/has neither input nor output nor user in it/);
    expect(await readdir(dataDir)).toEqual([]);
  });

  test('with a remote upstream settings and saved files alone, and it says so', async () => {
    const { source, dataDir } = await folders();
    await fill(source, {
      'input/a.txt': 'a',
      'user/default/comfy.settings.json': '{"a":1}',
    });
    const { code, stdout } = await importFrom(source, dataDir, {
      args: ['--upstream', 'http://127.0.0.1:9'],
    });
    expect(code).toBe(0);
    expect(stdout).toContain('Inputs and outputs were left: a remote upstream has its own.');
    expect(stdout).toContain('1 setting;');
    expect((await recorded(dataDir)).names).toEqual([]);
  });
});
