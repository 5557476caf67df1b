import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { readPrompt } from '../../src/cli/convert.ts';
import { pngOf } from '../support/clients/client-helpers.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { runCommandHere } from '../support/processes/run-command.ts';
import { type HostileV2, openHostileV2 } from '../support/upstreams/hostile-v2.ts';
import { flat, loading } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const KEY = 'key-of-the-converter';
let dir: string;
let holdover: Holdover;

beforeAll(async () => {
  dir = await runFolder('convert-test');
  await mkdir(join(dir, 'input/sub'), { recursive: true });
  await writeFile(join(dir, 'input/sub/cat.png'), await pngOf());
  await writeFile(join(dir, 'secret.txt'), 'not yours');
  await symlink(dir, join(dir, 'input/out'));
  await symlink(join(dir, 'secret.txt'), join(dir, 'input/link.png'));
  await symlink('sub/cat.png', join(dir, 'input/kitten.png'));
  holdover = await startHoldover({ upstream: 'embedded', args: ['--local-token', KEY] });
});
afterAll(() => holdover?.dispose());

const ENV = { HOLDOVER_UPSTREAM_KEY: KEY };

async function argvFor(content: object | string, args: readonly string[]) {
  const file = join(dir, 'prompt.json');
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  const where = ['--input-directory', join(dir, 'input'), '--upstream', holdover.url];
  return ['convert', file, ...where, ...args] as const;
}

const convert = async (content: object | string, ...args: string[]) =>
  runCommandHere(await argvFor(content, args), ENV);

async function submit(body: string): Promise<{ status: number; answer: any }> {
  const headers = { Authorization: `Bearer ${KEY}`, 'Content-Type': 'application/json' };
  const answer = await fetch(`${holdover.url}/api/v2/jobs`, { method: 'POST', headers, body });
  return { status: answer.status, answer: await answer.json() };
}

describe('holdover convert', () => {
  test.each([
    { what: 'a workflow in API format', content: loading('sub/cat.png') },
    { what: 'a body of POST /prompt', content: { prompt: loading('sub/cat.png'), client_id: 'c' } },
    {
      what: 'one node called prompt',
      content: {
        prompt: flat()['1'],
        '9': { ...flat()['9'], inputs: { ...flat()['9']!.inputs, images: ['prompt', 0] } },
      },
    },
  ])('$what becomes a submission that v2 takes', async ({ content }) => {
    const converted = await convert(content);
    expect(converted.code).toBe(0);
    expect(await submit(converted.stdout)).toMatchObject({ status: 201 });
  });

  test('names uploaded files by reference, and says which ones', async () => {
    const argv = await argvFor(loading('sub/cat.png'), []);
    const { code, stdout, stderr } = await runHoldover(argv, ENV);
    expect(code).toBe(0);
    const { image } = JSON.parse(stdout).workflow['3'].inputs;
    expect(image).toMatchObject({ __type: 'core/ASSET', info: { file_path: 'input/sub/cat.png' } });
    expect(stderr).toContain(`sub/cat.png as ${image.info.id}`);
  });

  test('takes a link to a file that is in the folder, too', async () => {
    const { code, stderr } = await convert(loading('kitten.png'));
    expect([code, stderr]).toEqual([0, expect.stringContaining('kitten.png as ')]);
  });

  test('names them by their path with --upstream-assets string', async () => {
    const { stdout } = await convert(loading('sub/cat.png'), '--upstream-assets', 'string');
    expect(JSON.parse(stdout).workflow['3'].inputs.image).toBe('input/sub/cat.png');
  });

  test('writes a file with --out', async () => {
    const out = join(dir, 'submission.json');
    expect(await convert(flat(), '--out', out)).toMatchObject({ code: 0, stdout: '' });
    expect(JSON.parse(await readFile(out, 'utf8'))).toEqual({ workflow: flat() });
  });

  test('keeps numbers to the digit', async () => {
    const { stdout } = await convert(
      JSON.stringify(flat()).replace(/"batch_size":1/, '"batch_size":18446744073709551615'),
    );
    expect(stdout).toContain('18446744073709551615');
  });

  test('takes what the targets of a partial run need', async () => {
    const graph = { ...flat(), '8': flat()['9'] };
    const { stdout } = await convert({ prompt: graph, partial_execution_targets: ['9'] });
    expect(JSON.parse(stdout)).toEqual({ workflow: flat() });
  });

  test('says what it leaves out, and no key', async () => {
    const secret = 'partner-secret';
    const extra_data = { api_key_comfy_org: secret, extra_pnginfo: {} };
    const { stdout, stderr } = await convert({
      prompt: flat(),
      client_id: 'c',
      number: 1,
      extra_data,
    });
    for (const name of ['client_id', 'number', 'extra_data.api_key_comfy_org', 'extra_pnginfo']) {
      expect(stderr).toContain(name);
    }
    expect([stdout, stderr].join().includes(secret)).toBe(false);
  });

  test.each([
    ['an editor’s workflow', { nodes: [], links: [] }, /Export \(API\)/],
    ['a prompt around an editor’s workflow', { prompt: { nodes: [] } }, /Export \(API\)/],
    ['no JSON', 'hello', /not JSON/],
    ['a list', '[]', /JSON objects/],
    ['something else', { hello: 'world' }, /no workflow in API format.*hello/],
    ['nothing', {}, /no nodes/],
    ['a number that is none', { prompt: flat(), number: 'x' }, /v1 would refuse it: "number"/],
  ])('%s is refused in words', (_what, content, reason) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    expect(() => readPrompt(text)).toThrow(reason);
  });

  test.each([
    ['a file that is not there', loading('dog.png'), /node 3, image: "dog.png" is not in/],
    ['a file above the folder', loading('../secret.txt'), /outside the input folder/],
    ['a link to a file outside', loading('link.png'), /"link.png" leads out of the input folder/],
    ['a file behind a link', loading('out/secret.txt'), /leads out of the input folder/],
    ['a file anywhere', loading('/etc/hostname'), /outside the input folder/],
    ['an output', loading('x.png [output]'), /is not an input/],
    ['no output', { prompt: flat(), partial_execution_targets: ['1'] }, /none of its targets/],
  ])('%s is refused in words, too', async (_what, content, reason) => {
    const { code, stdout, stderr } = await convert(content);
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(reason)]);
  });

  test('uploads nothing while one file is missing', async () => {
    const upstream: HostileV2 = await openHostileV2();
    const graph = { ...loading('sub/cat.png'), '5': loading('dog.png')['3'] };
    const { code } = await convert(graph, '--upstream', upstream.url);
    await upstream.close();
    const routes = upstream.journal.map(({ route }) => route);
    expect([code, routes.includes('upload')]).toEqual([1, false]);
  });

  test.each(['absent.json', 'secret.txt'])(
    'does not convert without the node definitions of --object-info %s',
    async (name) => {
      const path = join(dir, name);
      expect(await convert(flat(), '--object-info', path)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `error: --object-info ${path} has no definitions to read\n`,
      });
    },
  );

  test('says that the upstream is not there', async () => {
    const converted = await convert(loading('sub/cat.png'), '--upstream', 'http://127.0.0.1:1');
    expect(converted).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/could not be reached/),
    });
  });
});
