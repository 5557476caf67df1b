import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDataDir, shareDataDir } from '../src/data-dir.ts';
import { openSpool, shareSpool } from '../src/spool-dir.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'holdover-store-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const ledger = (id: string) => ({ id, secret: async (proposal: Buffer) => proposal });

describe('a data directory', () => {
  test('that one process had keeps its secret when several share it', async () => {
    const { secret } = openDataDir(root);
    expect((await shareDataDir(root, ledger('l1'))).secret).toEqual(secret);
  });

  test('that is shared has the secret of the ledger, and no file of its own', async () => {
    const given = Buffer.alloc(32, 7);
    const dir = await shareDataDir(root, { id: 'l1', secret: async () => given });
    expect(dir.secret).toEqual(given);
    expect(await readdir(root)).not.toContain('secret.key');
  });

  test('may be opened by many at once', async () => {
    const sharing = Array.from({ length: 5 }, () => shareDataDir(root, ledger('l1')));
    await expect(Promise.all(sharing)).resolves.toHaveLength(5);
  });

  const alone = async () => openDataDir(root);
  const shared = (id: string) => async () => shareDataDir(root, ledger(id));
  test.each([
    ['a shared ledger', 'the database', alone, shared('l1')],
    ['the database', 'a shared ledger', shared('l1'), alone],
    ['another shared ledger', 'a shared ledger', shared('l1'), shared('l2')],
  ])('is refused to %s once %s knows the files in it', async (_other, _one, first, second) => {
    await first();
    await mkdir(join(root, 'blobs'));
    await expect(second()).rejects.toThrow(
      new RegExp(`^--data-dir ${root} has files that belong to .*: use another folder$`),
    );
    await expect(first()).resolves.toMatchObject({ root });
  });

  test.each([
    [alone, shared('l1')],
    [shared('l1'), alone],
    [shared('l1'), shared('l2')],
  ])('without stored files goes from one ledger to another', async (first, second) => {
    await first();
    await second();
    await mkdir(join(root, 'blobs'));
    await expect(second()).resolves.toMatchObject({ root });
    await expect(first()).rejects.toThrow('use another folder');
  });
});

describe('the spool', () => {
  test('of a process that is alone is emptied', async () => {
    await writeFile(join(root, 'left-over'), 'x');
    expect(await readdir(openSpool(root).path)).toEqual([]);
  });

  test('of one of several is its own, and goes with it alone', async () => {
    const [one, other] = [shareSpool(root, 'one'), shareSpool(root, 'other')];
    await writeFile(join(other.path, 'upload'), 'x');
    one.close();
    expect(await readdir(root)).toEqual(['other']);
    expect(await readdir(other.path)).toEqual(['upload']);
    other.close();
  });

  test('of a process that is long dead goes when another starts, a younger one stays', async () => {
    for (const [name, hours] of [
      ['dead', 25],
      ['quiet', 23],
    ] as const) {
      await mkdir(join(root, name));
      const then = new Date(Date.now() - hours * 60 * 60_000);
      await utimes(join(root, name), then, then);
    }
    const mine = shareSpool(root, 'mine');
    expect((await readdir(root)).toSorted()).toEqual(['mine', 'quiet']);
    mine.close();
  });
});
