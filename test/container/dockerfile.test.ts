// No container engine runs here: the Dockerfile's steps are performed in a clean folder, with this
// machine's Node in the place of the base image, and what comes out is started as the image would be.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readDockerfile, readDockerignore } from '../support/processes/dockerfile.ts';
import { npmEnv } from '../support/processes/npm-env.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type Image, asUserOf, buildImage, installedPackages } from '../support/graphs/image.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const TOKEN = 'container-token';
const HEADERS = { 'X-API-Key': TOKEN };
const admits = readDockerignore(readFileSync(join(PROJECT, '.dockerignore'), 'utf8'));
const stages = readDockerfile(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8'));
const lock = JSON.parse(readFileSync(join(PROJECT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, { dev?: true }>;
};
const manifest = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

test.each([
  ['src/main.ts', true],
  ['scripts/build-page.js', true],
  ['page/index.html', true],
  ['docs/differences.md', false],
  ['deploy/health.mjs', true],
  ['package-lock.json', true],
  ['deploy/haproxy.cfg', false],
  ['test/layers.test.ts', false],
  ['data/secret.key', false],
  ['.git/config', false],
  ['node_modules/koa/package.json', false],
])('%s reaches the builder: %s', (path, reaches) => {
  expect(admits(path)).toBe(reaches);
});

describe('the image', () => {
  let folder: string;
  let image: Image;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'holdover-image-'));
    chmodSync(folder, 0o755);
    // Packages this machine has fetched before need not be fetched again.
    const env = { ...npmEnv(), npm_config_prefer_offline: 'true', NODE_ENV: undefined };
    const packages = await installedPackages(PROJECT);
    image = await buildImage(stages, folder, { folder: PROJECT, admits, env, ...packages });
  }, 300_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('is made in two stages and runs without root', () => {
    expect(stages).toHaveLength(2);
    expect(['', '0', 'root', '0:0']).not.toContain(image.user);
  });

  test('holds what runs and nothing else', () => {
    const held = readdirSync(image.workdir).toSorted();
    expect(held).toEqual([
      'dist',
      'fixtures',
      'health.mjs',
      'node_modules',
      'package.json',
      'page',
    ]);
    expect(readdirSync(image.root).toSorted()).toEqual(['app', 'data']);
  });

  test('holds the packages it needs, and none that only tests need', () => {
    const has = (name: string) => existsSync(join(image.workdir, 'node_modules', name));
    expect(Object.keys(manifest.dependencies).filter((name) => !has(name))).toEqual([]);
    // The page and the server share packages of the parser.
    const isForTests = (name: string) => lock.packages[`node_modules/${name}`]?.dev === true;
    expect(Object.keys(manifest.devDependencies).filter(isForTests).filter(has)).toEqual([]);
  });

  test('does not start open to all: without a token it says what is missing', async () => {
    const env = { PATH: process.env['PATH'], ...image.env };
    const refused = start(image, { env });
    const [code] = (await once(refused.child, 'exit')) as [number];
    expect(code).toBe(2);
    expect(refused.said()).toContain('HOLDOVER_LOCAL_TOKEN');
  });

  test('starts, is healthy, runs a job, and is not healthy when it has stopped', async () => {
    const port = await freePort();
    const own = { HOLDOVER_LOCAL_TOKEN: TOKEN, HOLDOVER_PORT: String(port) };
    const env = { PATH: process.env['PATH'], ...image.env, ...own };
    const { child, said } = start(image, { env });
    try {
      const url = `http://127.0.0.1:${port}`;
      await expect.poll(said, { timeout: 30_000 }).toContain('To see the GUI go to:');
      expect(await isHealthy(image, env)).toBe(true);
      expect((await fetch(`${url}/queue`)).status).toBe(401);
      expect(await (await fetch(url)).text()).toContain('<!doctype html>');
      const { body } = await postPrompt(url, { prompt: flat() }, { headers: HEADERS });
      const entry = async () =>
        (await getJson(`${url}/history/${body.prompt_id}`, HEADERS))[body.prompt_id]?.status;
      await expect.poll(entry, { timeout: 20_000 }).toMatchObject({ status_str: 'success' });
      expect(readdirSync(join(image.root, 'data'))).toContain('holdover.db');
      child.kill('SIGTERM');
      expect((await once(child, 'exit'))[0]).toBe(0);
      expect(await isHealthy(image, env)).toBe(false);
    } finally {
      child.kill('SIGKILL');
    }
  }, 90_000);
});

function start(
  image: Image,
  { env }: { readonly env: NodeJS.ProcessEnv },
): { readonly child: ChildProcess; readonly said: () => string } {
  const [program = '', ...args] = image.entrypoint;
  const child = spawn(program, args, { cwd: image.workdir, env, ...asUserOf(image) });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  }
  return { child, said: () => Buffer.concat(chunks).toString() };
}

/** True when the health check of the image succeeds. */
async function isHealthy(image: Image, env: NodeJS.ProcessEnv): Promise<boolean> {
  const [program = '', ...args] = image.healthCheck;
  const options = { cwd: image.workdir, env, ...asUserOf(image) };
  return promisify(execFile)(program, args, options).then(
    () => true,
    () => false,
  );
}
