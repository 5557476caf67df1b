import { cp, mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { LedgerLacksFiles } from '../../src/data-folder/bind-ledger.ts';
import { openDataDir } from '../../src/data-folder/data-dir.ts';
import type { LedgerIdentity } from '../../src/ledger/identity.ts';
import { openSpool, openSharedSpool } from '../../src/data-folder/spool-folder.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

let root: string;
const folders = new Map<string, string>();
beforeEach(async () => {
  folders.clear();
  root = await tempFolder('store');
});

/** The same id is the same ledger throughout one test. */
function ledger(id: string, storedIn: LedgerIdentity['storedIn']): LedgerIdentity {
  return {
    id,
    storedIn,
    folder: async () => folders.get(id),
    tie: async (folderId) => {
      folders.set(id, folders.get(id) ?? folderId);
      return folders.get(id) ?? '';
    },
    ...(storedIn === 'service' && { secret: async (proposal: Buffer) => proposal }),
  };
}
const inRedis = (id: string) => ledger(id, 'service');
const inFolder = (id: string) => ledger(id, 'folder');

describe('a data directory', () => {
  test('that one process had keeps its secret when several share it', async () => {
    const { secret } = await openDataDir(root, inFolder('d1'));
    expect((await openDataDir(root, inRedis('l-1'))).secret).toEqual(secret);
  });

  test('that is shared has the secret of the ledger, and no file of its own', async () => {
    const given = Buffer.alloc(32, 7);
    const dir = await openDataDir(root, { ...inRedis('l-1'), secret: async () => given });
    expect(dir.secret).toEqual(given);
    expect(await readdir(root)).not.toContain('secret.key');
  });

  test('may be opened by many at once', async () => {
    const sharing = Array.from({ length: 5 }, () => openDataDir(root, inRedis('l-1')));
    await expect(Promise.all(sharing)).resolves.toHaveLength(5);
  });

  test('in which another process stores a file meanwhile is not taken for one of a lost ledger', async () => {
    const late = inRedis('l-1');
    const meanwhile = async () => {
      await openDataDir(root, inRedis('l-1'));
      await storeBlob(root);
      return inRedis('l-1').folder();
    };
    await expect(openDataDir(root, { ...late, folder: meanwhile })).resolves.toMatchObject({
      root,
    });
  });

  describe('of several processes', () => {
    let other: string;
    beforeEach(async () => {
      other = await tempFolder('store');
    });

    test('is refused to a process with another one', async () => {
      await openDataDir(root, inRedis('l-1'));
      await expect(openDataDir(other, inRedis('l-1'))).rejects.toThrow(
        `--data-dir ${other} is not the folder that other processes of this --ledger use`,
      );
      expect(await readdir(other)).not.toContain('ledger.id');
      await expect(openDataDir(other, inRedis('l-2'))).resolves.toMatchObject({ root: other });
    });

    test('may be in another place after a while, whole', async () => {
      await openDataDir(root, inRedis('l-1'));
      await cp(root, other, { recursive: true });
      await rm(root, { recursive: true });
      await expect(openDataDir(other, inRedis('l-1'))).resolves.toMatchObject({ root: other });
    });

    test('that an earlier version made becomes the one', async () => {
      await writeFile(join(root, 'ledger.id'), 'l-1');
      await storeBlob(root);
      await expect(openDataDir(root, inRedis('l-1'))).resolves.toMatchObject({ root });
      await expect(openDataDir(other, inRedis('l-1'))).rejects.toThrow('is not the folder');
    });

    test('whose id was cut off is reported', async () => {
      await writeFile(join(root, 'folder.id'), '');
      await expect(openDataDir(root, inRedis('l-1'))).rejects.toThrow('folder.id is damaged');
    });
  });

  test.each([
    ['a shared ledger', inFolder('d1'), inRedis('l-1'), 'the database in the folder'],
    ['a database', inRedis('l-1'), inFolder('d1'), 'a ledger in Redis'],
    ['another shared ledger', inRedis('l-1'), inRedis('l-2'), 'another ledger in Redis'],
    ['another database', inFolder('d1'), inFolder('d2'), ''],
  ])('with files is refused to %s that is new', async (_, first, second, whose) => {
    await openDataDir(root, first);
    await storeBlob(root);
    const refused = openDataDir(root, second);
    await expect(refused).rejects.toBeInstanceOf(LedgerLacksFiles);
    await expect(refused).rejects.toThrow(
      new RegExp(`^--data-dir ${root} holds files, .*${whose}`),
    );
    await expect(openDataDir(root, first)).resolves.toMatchObject({ root });
  });

  test('with files is refused to a ledger that was used with it before those files', async () => {
    await openDataDir(root, inFolder('d1'));
    await openDataDir(root, inRedis('l-1'));
    await storeBlob(root);
    await expect(openDataDir(root, inFolder('d1'))).rejects.toThrow('belong to another --ledger');
  });

  test.each([
    [inFolder('d1'), inRedis('l-1')],
    [inRedis('l-1'), inFolder('d1')],
    [inRedis('l-1'), inRedis('l-2')],
  ])('without stored files goes from one ledger to another', async (first, second) => {
    await openDataDir(root, first);
    await openDataDir(root, second);
    await storeBlob(root);
    await expect(openDataDir(root, second)).resolves.toMatchObject({ root });
    await expect(openDataDir(root, first)).rejects.toThrow('belong to another --ledger');
  });
});

async function storeBlob(folder: string): Promise<void> {
  await mkdir(join(folder, 'blobs', 'aa'), { recursive: true });
  await writeFile(join(folder, 'blobs', 'aa', 'a'.repeat(64)), 'x');
}

describe('the spool', () => {
  test('of a process that is alone is emptied', async () => {
    await writeFile(join(root, 'left-over'), 'x');
    openSpool(root);
    expect(await readdir(root)).toEqual([]);
  });

  test('of one of several is its own, and goes with it alone', async () => {
    const [one, other] = [openSharedSpool(root, 'one'), openSharedSpool(root, 'other')];
    await writeFile(join(other.path, 'upload'), 'x');
    one.close();
    expect(await readdir(root)).toEqual(['other']);
    expect(await readdir(other.path)).toEqual(['upload']);
    other.close();
  });

  test('of a process that is long dead goes when another starts, a younger one stays', async () => {
    for (const [name, hours] of [
      ['dead', 8 * 24],
      ['quiet', 6 * 24],
    ] as const) {
      await mkdir(join(root, name));
      const then = new Date(Date.now() - hours * 60 * 60_000);
      await utimes(join(root, name), then, then);
    }
    const mine = openSharedSpool(root, 'mine');
    expect((await readdir(root)).toSorted()).toEqual(['mine', 'quiet']);
    mine.close();
  });

  test('goes with no clock that is set by a day, here or where the files are', async () => {
    await mkdir(join(root, 'living'));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 25 * 60 * 60_000 });
    onTestFinished(() => void vi.useRealTimers());
    const mine = openSharedSpool(root, 'mine');
    expect((await readdir(root)).toSorted()).toEqual(['living', 'mine']);
    mine.close();
  });
});
