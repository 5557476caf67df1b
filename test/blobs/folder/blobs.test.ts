import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { blobsSuite } from '../blobs.suite.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const BYTES = Buffer.from('bytes');
const HASH = hashOf(BYTES);

async function openFolder() {
  const dataDir = await tempFolder('data');
  const spoolDir = path.join(dataDir, 'spool');
  await mkdir(spoolDir);
  const dir = path.join(dataDir, 'blobs');
  return { dir, spoolDir, blobs: createFolderBlobs(dir, spoolDir) };
}

blobsSuite('a folder', async () => (await openFolder()).blobs);

test('a cut-off file of a folder is replaced', async () => {
  const { dir, blobs } = await openFolder();
  await blobs.put(HASH, BYTES);
  await blobs.markRecorded(HASH);
  const [folder = ''] = await readdir(dir);
  const [file = ''] = await readdir(path.join(dir, folder));
  await writeFile(path.join(dir, folder, file), 'by');
  await blobs.put(HASH, BYTES);
  expect(await blobs.read(HASH)).toEqual(BYTES);
});

test('bytes that cannot be put into a folder leave nothing', async () => {
  const { dir, spoolDir, blobs } = await openFolder();
  await writeFile(dir, 'not a folder');
  await expect(blobs.put(HASH, BYTES)).rejects.toThrow(/ENOTDIR|EEXIST/);
  expect(await readdir(spoolDir)).toEqual([]);
});
