import { constants, existsSync } from 'node:fs';
import { open, readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { hashOf } from '../../src/lib/hash.ts';
import { moveIntoPlace } from '../../src/lib/rename-new.ts';
import { spoolBytes, spoolStream } from '../../src/lib/spool.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const syncs = vi.hoisted(() => ({ before: (): void => {} }));

// Modules that an earlier file loaded in this process have the real one, and later files get it.
vi.hoisted(() => vi.resetModules());
afterAll(() => vi.resetModules());

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const fsync: typeof fs.fsync = Object.assign((...call: Parameters<typeof fs.fsync>) => {
    syncs.before();
    fs.fsync(...call);
  }, fs.fsync);
  return { ...fs, fsync };
});

let root: string;
let dir: string;
beforeEach(async () => {
  root = await tempFolder('spool');
  dir = join(root, 'spool');
});
afterEach(async () => {
  vi.restoreAllMocks();
  syncs.before = () => {};
});

async function left(): Promise<string[]> {
  return readdir(dir).catch(() => []);
}

/** Every open file has this prototype; nothing exports it. */
async function fileHandles(): Promise<Awaited<ReturnType<typeof open>>> {
  const handle = await open(root, constants.O_RDONLY);
  await handle.close();
  return Object.getPrototypeOf(handle);
}

function failing(code: string): Error {
  return Object.assign(new Error(`${code}: as the disk would say`), { code, syscall: 'write' });
}

describe('a spooled stream', () => {
  test('is readable by the owner only, in a folder that is too', async () => {
    const { path } = await spoolBytes(Buffer.from('secret'), { dir });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
  });

  test.each([
    [5, 5, true],
    [6, 5, false],
    [0, 0, true],
    [1, 0, false],
  ])('of %i bytes under a limit of %i is taken: %s', async (length, maxBytes, ok) => {
    const spooled = await spoolStream(Readable.from([Buffer.alloc(length)]), { dir, maxBytes });
    expect(spooled.ok).toBe(ok);
    expect(await left()).toHaveLength(ok ? 1 : 0);
  });

  test.each([
    ['at once', 0],
    ['after a while', 200_000],
  ])('cut off %s is 400 and leaves nothing', async (_when, bytes) => {
    const source = new PassThrough();
    const spooling = spoolStream(source, { dir, maxBytes: 1_000_000 });
    source.write(Buffer.alloc(bytes));
    setImmediate(() => source.destroy(new Error('aborted')));
    expect(await spooling).toEqual({ ok: false, status: 400, message: 'The upload was cut off.' });
    expect(await left()).toEqual([]);
  });

  test.each([
    ['ENOSPC', 'There is no room left to keep this file.'],
    ['EDQUOT', 'There is no room left to keep this file.'],
    ['EFBIG', 'There is no room left to keep this file.'],
    ['EIO', 'The file could not be stored (EIO).'],
  ])('on a disk that says %s is 507', async (code, message) => {
    vi.spyOn(await fileHandles(), 'writeFile').mockRejectedValue(failing(code));
    const spooled = await spoolStream(Readable.from([Buffer.alloc(6)]), { dir, maxBytes: 9 });
    expect(spooled).toMatchObject({ ok: false, status: 507, message });
    expect(await left()).toEqual([]);
  });

  test('on a disk that is full only when it is synchronised is 507', async () => {
    vi.spyOn(await fileHandles(), 'sync').mockRejectedValue(failing('ENOSPC'));
    const spooled = await spoolStream(Readable.from([Buffer.alloc(6)]), { dir, maxBytes: 9 });
    expect(spooled).toMatchObject({ ok: false, status: 507 });
    expect(await left()).toEqual([]);
  });

  test('is whole, whatever arrives while a write is running', async () => {
    const source = Readable.from(['01', '', '2345', '6', '789'].map((text) => Buffer.from(text)));
    const spooled = await spoolStream(source, { dir, maxBytes: 10 });
    const { path } = spooled.ok ? spooled.value : { path: '' };
    expect(await readFile(path, 'utf8')).toBe('0123456789');
    expect(spooled).toMatchObject({ value: { sizeBytes: 10, hash: hashOf(await readFile(path)) } });
  });

  test('is written no faster than the disk takes it', async () => {
    let produced = 0;
    let taken = 0;
    const behind: number[] = [];
    vi.spyOn(await fileHandles(), 'writeFile').mockImplementation(async (data) => {
      behind.push(produced - taken);
      await new Promise((resolve) => setImmediate(resolve));
      taken += (data as Buffer).length;
    });
    const source = Readable.from(
      (function* () {
        for (; produced < 32 * 1024 * 1024; produced += 65_536) yield Buffer.alloc(65_536);
      })(),
      { highWaterMark: 1 },
    );
    expect(await spoolStream(source, { dir, maxBytes: 1e9 })).toMatchObject({ ok: true });
    expect(Math.max(...behind)).toBeLessThan(4 * 1024 * 1024);
  });
});

describe('adopting a file', () => {
  test('is synchronised before and after the move: the file, then every folder that changed', async () => {
    const file = await spoolBytes(Buffer.from('kept'), { dir });
    const present: boolean[] = [];
    const target = join(root, 'a', 'b', 'c');
    syncs.before = () => void present.push(existsSync(target));
    await moveIntoPlace(file, target);
    expect(present).toEqual([false, true, true, true]);
  });
});
