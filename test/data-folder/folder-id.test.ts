// The id of a data folder is written whole or not at all.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { bindDataDir } from '../../src/data-folder/bind-ledger.ts';
import type { LedgerIdentity } from '../../src/ledger/identity.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

const disk = vi.hoisted(() => ({ isFull: false }));

// Modules that an earlier file loaded in this process have the real one, and later files get it.
vi.hoisted(() => vi.resetModules());
afterAll(() => vi.resetModules());

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  const writeFileSync: typeof fs.writeFileSync = (path, content, options) => {
    // The name is on the disk, and nothing else is.
    fs.writeFileSync(path, disk.isFull ? '' : content, options);
    if (disk.isFull) throw new Error('ENOSPC');
  };
  return { ...fs, writeFileSync };
});

test('a start on a full disk leaves a folder that can be used later', async () => {
  const root = await tempFolder('folder-id');
  let tied: string | undefined;
  const ledger: LedgerIdentity = {
    id: 'l-1',
    storedIn: 'folder',
    folder: async () => tied,
    tie: async (folderId) => (tied ??= folderId),
  };
  disk.isFull = true;
  await expect(bindDataDir(root, ledger)).rejects.toThrow('ENOSPC');
  disk.isFull = false;
  expect(await readdir(root)).toEqual([]);
  await bindDataDir(root, ledger);
  expect(await readFile(join(root, 'folder.id'), 'utf8')).toBe(tied);
  expect(await readdir(root)).toEqual(['folder.id', 'ledger.id']);
});
