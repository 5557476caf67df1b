// The package as npm packs it, unpacked into an empty folder beside the packages that it depends on.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, readdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 180_000 });

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

let folder: string;
let packed: {
  readonly filename: string;
  readonly files: { path: string }[];
};

beforeAll(async () => {
  folder = await runFolder('package');
  // The build that the other tests use is packed, and not made anew under them.
  const args = ['pack', '--ignore-scripts', '--json', '--pack-destination', folder];
  packed = JSON.parse((await run('npm', args, { cwd: ROOT })).stdout)[0];
});

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
    await mkdir(home, { recursive: true });
    await installInto(join(home, 'node_modules'));
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

/** As npm does without install scripts, with the packages of this checkout instead of a registry's. */
async function installInto(modules: string): Promise<void> {
  const own = join(modules, 'holdover');
  await mkdir(own, { recursive: true });
  const tarball = join(folder, packed.filename);
  await run('tar', ['-xzf', tarball, '-C', own, '--strip-components=1']);
  const lock = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: { [path: string]: { dev?: true; devOptional?: true } };
  };
  for (const [path, { dev, devOptional }] of Object.entries(lock.packages)) {
    const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? [];
    if (name === undefined || dev || devOptional || !existsSync(join(ROOT, path))) continue;
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(ROOT, path), join(modules, name));
  }
}

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
