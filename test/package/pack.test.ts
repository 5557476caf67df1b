// The package as npm packs it, installed without install scripts into an empty folder.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { npmEnv } from '../support/processes/npm-env.ts';
import { flat } from '../support/graphs/workflows.ts';

// It installs some 150 packages.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 });

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

let folder: string;
let packed: {
  readonly filename: string;
  readonly files: { path: string }[];
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdover-package-'));
  // The build that the other tests use is packed, and not made anew under them.
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  packed = JSON.parse((await run('npm', args, { cwd: ROOT })).stdout)[0];
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('the package', () => {
  test('holds no recording, source map, source or test', () => {
    const paths = packed.files.map(({ path }) => path);
    expect(
      paths.filter((path) => /^(src|test)\/|\.map$|^fixtures\/(v1|openapi|pixels)/.test(path)),
    ).toEqual([]);
    expect(paths).toEqual(
      expect.arrayContaining(['README.md', 'LICENSE', 'CHANGELOG.md', 'docs/operating.md']),
    );
  });

  test('has the licences of what is bundled', async () => {
    const texts = await readFile(join(ROOT, 'dist/LICENSES.txt'), 'utf8');
    for (const name of ['koa', 'bullmq', 'pino', '@koa/router']) {
      expect(texts).toMatch(new RegExp(`^== ${name} \\d`, 'm'));
    }
    expect(packed.files.map(({ path }) => path)).toContain('dist/LICENSES.txt');
  });

  test('can be published, with provenance', async () => {
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    expect(manifest.private).toBeUndefined();
    expect(manifest.publishConfig).toEqual({ access: 'public', provenance: true });
  });

  test('runs where it is installed, and the demo writes beside where it is started', async () => {
    const home = join(folder, 'home');
    await mkdir(home);
    await writeFile(join(home, 'package.json'), '{}');
    const tarball = join(folder, packed.filename);
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
    await run('npm', ['install', ...quiet, tarball], { cwd: home, env: npmEnv() });
    const program = join(home, 'node_modules/holdover/dist/main.js');
    expect((await run(process.execPath, [program, '--version'])).stdout).toMatch(
      /^\d+\.\d+\.\d+\n$/,
    );

    const server = spawn(process.execPath, [program, '--port', '0'], { cwd: home });
    try {
      const [line] = (await once(server.stdout, 'data')) as [Buffer];
      const url = /go to: (\S+)/.exec(line.toString())?.[1] ?? '';
      expect(await (await fetch(url)).text()).toContain('<!doctype html>');
      const { body } = await postPrompt(url, { prompt: flat() });
      const status = async () =>
        (await getJson(`${url}/history`))[body.prompt_id]?.status.status_str;
      await expect.poll(status).toBe('success');
      const model = await fetch(`${url}/v1/models/local/digest`, {
        method: 'POST',
        headers: { 'X-API-Key': 'me', 'Content-Type': 'application/json' },
        body: JSON.stringify({ text: 'What a wonderful day!' }),
      });
      expect(model.status).toBe(200);
    } finally {
      server.kill('SIGKILL');
    }

    const demo = join(home, 'node_modules/holdover/dist/demo.js');
    await run(process.execPath, [demo], { cwd: home });
    expect(await readdir(join(home, 'demo-output'))).toContain('last-preview.jpg');
    expect(await readdir(join(home, 'node_modules/holdover'))).not.toContain('demo-output');
  });
});

test('npm start without the build tools says what to run', async () => {
  const checkout = join(folder, 'checkout');
  await mkdir(checkout);
  await mkdir(join(checkout, 'scripts'));
  for (const file of ['package.json', 'scripts/prestart.js']) {
    await copyFile(join(ROOT, file), join(checkout, file));
  }
  const failure = await run('npm', ['start'], { cwd: checkout }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ stderr: expect.stringContaining('npm ci && npm run build') });
});
