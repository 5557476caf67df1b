import { readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { blobsSuite, spooledBytes } from '../blobs.suite.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const BYTES = Buffer.from('bytes');
const HASH = hashOf(BYTES);

async function openFolder() {
  const dir = path.join(await tempFolder('data'), 'blobs');
  return { dir, blobs: createFolderBlobs(dir) };
}

blobsSuite('a folder', async () => (await openFolder()).blobs);

test('a cut-off file of a folder is replaced', async () => {
  const { dir, blobs } = await openFolder();
  await blobs.put(await spooledBytes(BYTES));
  await blobs.markRecorded(HASH);
  const [folder = ''] = await readdir(dir);
  const [file = ''] = await readdir(path.join(dir, folder));
  await writeFile(path.join(dir, folder, file), 'by');
  await blobs.put(await spooledBytes(BYTES));
  expect(await blobs.read(HASH)).toEqual(BYTES);
});
