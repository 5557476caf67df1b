import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { formatOf, uploadInput } from '../support/clients/client-helpers.ts';
import { runHoldover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { openRunners } from '../support/clients/v2-code.ts';
import { flat, streaming } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// `holdover trace`, as a command line.

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const SOCKET_IMAGES = fileURLToPath(
  new URL('../support/scripts/socket-images.mjs', import.meta.url),
);

let dir: string;
beforeAll(async () => void (dir = await runFolder('trace-test')));

const node = (code: string): string[] => ['--', process.execPath, '-e', code];

describe('holdover trace', () => {
  let ran: Awaited<ReturnType<typeof runHoldover>>;
  let url = '';
  let host = '';
  beforeAll(async () => {
    const names = ['COMFYUI_SERVER', 'SERVER_ADDRESS', 'COMFYUI_URL', 'HOLDOVER_URL'];
    const told = [...names.map((name) => `process.env.${name}`), '...process.argv.slice(1)'];
    const code = `console.log(${told.join(', ')}); process.exitCode = 3; fetch(process.env.HOLDOVER_URL + "/queue")`;
    const command = [...node(code), '{url}/a', 'host={server}'];
    ran = await runHoldover(['trace', '--format', 'python', ...command]);
    [, url = '', host = ''] = /listening on (http:\/\/(\S+))/.exec(ran.stderr) ?? [];
  });

  test('tells its command the address in the environment, and puts it into its arguments', () => {
    expect(ran.stderr).toContain([host, host, url, url, `${url}/a`, `host=${host}`].join(' '));
  });

  test('tells what each call became', () => {
    expect(ran.stderr).toMatch(/GET \/queue +200 → \(answered by Holdover itself\)/);
  });

  test('keeps standard output for the code, and ends as its command did', () => {
    expect([ran.code, ran.stdout.split('\n')[0]]).toEqual([
      3,
      expect.stringMatching(/^"""A v1 session as v2 calls/),
    ]);
    expect(ran.stdout).not.toContain('host=');
  });

  test.each([
    { args: [], reason: /say which COMMAND/ },
    { args: ['--format', 'perl', '--', 'true'], reason: /Allowed choices are python, typescript/ },
    { args: ['--nonsense'], reason: /unknown option/ },
    {
      args: ['--front-end-root', MAIN, '--', 'true'],
      reason: /^error: option '--front-end-root' needs a folder with an index.html, not .*\n$/,
    },
  ])('$args is refused', async ({ args, reason }) => {
    const ran = await runHoldover(['trace', ...args]);
    expect([ran.code, ran.stderr]).toEqual([2, expect.stringMatching(reason)]);
  });

  test('says which command cannot be run', async () => {
    const ran = await runHoldover(['trace', '--', '/no/such/program']);
    expect([ran.code, ran.stderr]).toEqual([
      1,
      expect.stringMatching(/^holdover trace: .*\nerror: \/no\/such\/program cannot be run\n$/),
    ]);
  });

  test('with a port alone listens until Ctrl-C', async () => {
    const out = join(dir, 'alone');
    const child = spawn(process.execPath, [MAIN, 'trace', '--port', '0', '--out', out], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let told = '';
    const url = await new Promise<string>((resolve) => {
      child.stderr.on('data', (chunk: Buffer) => {
        told += chunk.toString();
        const found = /listening on (\S+)/.exec(told)?.[1];
        if (found) resolve(found);
      });
    });
    const picture = { bytes: Buffer.from('bytes of mine'), name: 'mine.bin' };
    await uploadInput(url, picture);
    child.kill('SIGINT');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(told).toContain(`wrote ${join(out, 'inputs/mine.bin')}`);
  });

  test('keys a script presents, or has in its workflow, are not written', async () => {
    const key = 'my-very-own-key';
    const graph = JSON.stringify(flat({ prefix: key }));
    const body = `{"prompt":${graph},"extra_data":{"api_key_comfy_org":"${key}"}}`;
    const options = `{method:'POST',headers:{'X-API-Key':'${key}'},body:process.argv[1]}`;
    const code = `fetch(process.env.HOLDOVER_URL+'/prompt?token=${key}',${options})`;
    const ran = await runHoldover(['trace', ...node(code), body]);
    expect(ran.stdout).toContain('[removed]');
    expect(ran.stdout).toContain('COMFY_PARTNER_API_KEY');
    expect([ran.stdout.includes(key), ran.stderr.includes(key)]).toEqual([false, false]);
  });
});

test('a key that is a word of the code leaves the code as it is', async () => {
  const body = `{"prompt":${JSON.stringify(flat())},"extra_data":{"api_key_comfy_org":"PARTNER"}}`;
  const options = `{method:'POST',headers:{'X-API-Key':'workflow'},body:process.argv[1]}`;
  const code = `fetch(process.env.HOLDOVER_URL+'/prompt',${options})`;
  const ran = await runHoldover(['trace', ...node(code), body]);
  expect(ran.stdout).toContain('os.environ["COMFY_PARTNER_API_KEY"]');
  expect(ran.stdout).not.toContain('[removed]');
});

describe('code on standard output', () => {
  const holdover = useHoldover({ upstream: 'embedded' });

  test.each([
    { language: 'python', file: 'one.py' },
    { language: 'typescript', file: 'one.mts' },
  ] as const)(
    'stands alone, and makes the folder for its downloads: $language',
    async ({ language, file }) => {
      const cwd = await mkdtemp(join(dir, 'alone-'));
      const runner = (await openRunners({ cwd, env: {} }))[language];
      if (!runner.ok) return console.warn(`${language} does not run here: ${runner.why}`);
      await writeFile(join(cwd, 'wf.json'), JSON.stringify(streaming()));
      // It gets its picture over the socket only.
      const script = ['--', process.execPath, SOCKET_IMAGES, '{server}', join(cwd, 'wf.json'), cwd];
      const upstream = ['--upstream', holdover.url];
      const ran = await runHoldover(['trace', '--format', language, ...upstream, ...script]);
      await writeFile(join(cwd, file), ran.stdout);
      const out = 'a new/folder';
      expect(await runner.run(file, [out])).toMatchObject({ code: 0, err: '' });
      const [, name = ''] = /([\w-]+\.png)/.exec(ran.stdout) ?? [];
      expect(await formatOf(await readFile(join(cwd, out, name)))).toBe('png 24x16');
    },
  );
});
