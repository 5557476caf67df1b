import { cp, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openDataDir, shareDataDir } from '../src/data-dir.ts';
import { openSpool, shareSpool } from '../src/spool-dir.ts';

let root: string;
const folders = new Map<string, string>();
beforeEach(async () => {
  folders.clear();
  root = await mkdtemp(join(tmpdir(), 'holdover-store-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

/** The same text gives the same ledger in one test. */
function ledger(id: string) {
  return {
    id,
    folder: async (proposal: string) => {
      folders.set(id, folders.get(id) ?? proposal);
      return folders.get(id) ?? '';
    },
    secret: async (proposal: Buffer) => proposal,
  };
}

describe('a data directory', () => {
  test('that one process had keeps its secret when several share it', async () => {
    const { secret } = openDataDir(root);
    expect((await shareDataDir(root, ledger('l1'))).secret).toEqual(secret);
  });

  test('that is shared has the secret of the ledger, and no file of its own', async () => {
    const given = Buffer.alloc(32, 7);
    const dir = await shareDataDir(root, { ...ledger('l1'), secret: async () => given });
    expect(dir.secret).toEqual(given);
    expect(await readdir(root)).not.toContain('secret.key');
  });

  test('may be opened by many at once', async () => {
    const sharing = Array.from({ length: 5 }, () => shareDataDir(root, ledger('l1')));
    await expect(Promise.all(sharing)).resolves.toHaveLength(5);
  });

  describe('of several processes', () => {
    let other: string;
    beforeEach(async () => {
      other = await mkdtemp(join(tmpdir(), 'holdover-store-'));
      return () => rm(other, { recursive: true, force: true });
    });

    test('is refused to whoever comes with another one', async () => {
      await shareDataDir(root, ledger('l1'));
      await expect(shareDataDir(other, ledger('l1'))).rejects.toThrow(
        `--data-dir ${other} is not the folder that other processes of this --ledger use`,
      );
      expect(await readdir(other)).not.toContain('ledger.id');
      await expect(shareDataDir(other, ledger('l2'))).resolves.toMatchObject({ root: other });
    });

    test('may be in another place after a while, whole', async () => {
      await shareDataDir(root, ledger('l1'));
      await cp(root, other, { recursive: true });
      await rm(root, { recursive: true });
      await expect(shareDataDir(other, ledger('l1'))).resolves.toMatchObject({ root: other });
    });

    test('that an earlier version made becomes the one', async () => {
      await writeFile(join(root, 'ledger.id'), 'l1');
      await mkdir(join(root, 'blobs'));
      await expect(shareDataDir(root, ledger('l1'))).resolves.toMatchObject({ root });
      await expect(shareDataDir(other, ledger('l1'))).rejects.toThrow('is not the folder');
    });

    test('whose id was cut off is told of', async () => {
      await writeFile(join(root, 'folder.id'), '');
      await expect(shareDataDir(root, ledger('l1'))).rejects.toThrow('folder.id is damaged');
    });
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
