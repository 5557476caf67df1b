import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startHoldover } from '../support/processes/holdover.ts';

const LOADER = fileURLToPath(new URL('../../dist/chunks/compile-cache.cjs', import.meta.url));

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdover-cache-'));
  mkdirSync(cacheFolder(), { mode: 0o700 });
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const cacheFolder = () => join(folder, 'holdover');

/** Loads a file in a process of its own, which saves the code at its end; what the file printed. */
function run(source: string, ...args: readonly string[]): string {
  const file = join(folder, 'program.cjs');
  writeFileSync(file, source);
  const script = `const { loadBundled, saveCompiledCode } = require(${JSON.stringify(LOADER)});
    loadBundled(${JSON.stringify(file)});
    saveCompiledCode();`;
  const env = { ...process.env, XDG_CACHE_HOME: folder };
  return execFileSync(process.execPath, ['-e', script, ...args], { env, encoding: 'utf8' });
}

/** The name and inode of each file of the cache: a file that is made again has another one. */
function saved(): Record<string, number> {
  const names = readdirSync(cacheFolder());
  return Object.fromEntries(names.map((name) => [name, statSync(join(cacheFolder(), name)).ino]));
}

const greet = (word: string) =>
  `function greet() { return '${word}'; } process.stdout.write(greet());`;

describe('compiled code', () => {
  test('is taken at the next start, not made again', () => {
    expect(run(greet('hello'))).toBe('hello');
    const first = saved();
    expect(Object.keys(first)).toHaveLength(1);
    expect(run(greet('hello'))).toBe('hello');
    expect(saved()).toEqual(first);
  });

  test('is made again by a process that has compiled much more, and then taken', () => {
    const rare = `function rare(n) { ${'n += n * 3 - 1;'.repeat(5000)} }`;
    const source = `${rare} if (process.argv.includes('prompts')) rare(1);`;
    run(source);
    const afterStart = saved();
    run(source, 'prompts');
    const afterPrompts = saved();
    expect(Object.keys(afterPrompts)).toEqual(Object.keys(afterStart));
    expect(afterPrompts).not.toEqual(afterStart);
    run(source);
    run(source, 'prompts');
    expect(saved()).toEqual(afterPrompts);
  });

  test('of another source is not taken, be it as long', () => {
    expect(run(greet('hello'))).toBe('hello');
    expect(run(greet('salut'))).toBe('salut');
    expect(Object.keys(saved())).toHaveLength(2);
  });

  test.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length / 2)],
    ['empty', () => Buffer.alloc(0)],
    ['zeros after a power cut', (bytes: Buffer) => Buffer.alloc(bytes.length)],
    [
      'wrong bytes',
      (bytes: Buffer) =>
        Buffer.from(bytes.map((byte, i) => (i % 7 === 1 && i > 24 ? ~byte : byte))),
    ],
  ])('that is damaged (%s) is made again', (_, damage) => {
    run(greet('hello'));
    const [name = ''] = Object.keys(saved());
    const file = join(cacheFolder(), name);
    const whole = readFileSync(file);
    writeFileSync(file, damage(whole));
    expect(run(greet('hello'))).toBe('hello');
    expect(Object.keys(saved())).toEqual([name]);
    expect(readFileSync(file).length).toBe(whole.length);
    const again = saved();
    expect(run(greet('hello'))).toBe('hello');
    expect(saved()).toEqual(again);
  });

  test('is neither saved nor taken where other users may write', () => {
    chmodSync(cacheFolder(), 0o777);
    expect(run(greet('hello'))).toBe('hello');
    expect(saved()).toEqual({});
  });

  test('is not needed: a file in place of the folder', () => {
    rmSync(cacheFolder(), { recursive: true });
    writeFileSync(cacheFolder(), '');
    expect(run(greet('hello'))).toBe('hello');
  });
});

test('a server saves the code of its start, and the next one takes it', async () => {
  const start = async () => {
    const holdover = await startHoldover({ env: { XDG_CACHE_HOME: folder } });
    await fetch(`${holdover.url}/queue`);
    expect(await holdover.terminate()).toBe(0);
    await holdover.dispose();
    return saved();
  };
  const first = await start();
  expect(Object.keys(first)).toContainEqual(expect.stringMatching(/^server\.cjs-/));
  expect(await start()).toEqual(first);
});

test('a server of its own does not load the libraries of several', () => {
  const server = readFileSync(new URL('../../dist/chunks/server.cjs', import.meta.url), 'utf8');
  // Names of ioredis, BullMQ and undici.
  for (const name of ['MaxRetriesPerRequestError', 'WaitingChildrenError', 'RetryAgent'])
    expect(server.includes(name), name).toBe(false);
});

test('code that is loaded after V8 was told to optimize later is taken too', () => {
  const late = join(folder, 'late.cjs');
  writeFileSync(late, greet('late'));
  const script = `const { delayOptimization, loadBundled, saveCompiledCode } = require(${JSON.stringify(LOADER)});
    delayOptimization();
    saveCompiledCode();
    setTimeout(() => loadBundled(${JSON.stringify(late)}), 800);`;
  const env = { ...process.env, XDG_CACHE_HOME: folder };
  const start = () =>
    execFileSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }) && saved();
  const first = start();
  expect(Object.keys(first)).toHaveLength(1);
  // Code that V8 does not take is made again.
  expect(start()).toEqual(first);
});
