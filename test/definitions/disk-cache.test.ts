import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDefinitionsCache } from '../../src/definitions/disk-cache.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { tempDir } from '../upstreams/embedded/open.ts';

const TEXT = { bytes: Buffer.from('{"A":{}}'), from: 0, validators: {} };

test('a text that cannot be stored leaves nothing on the disk', async () => {
  const root = await tempDir();
  const entry = createDefinitionsCache({ root, log: silentLogger() }).entryFor('source', 'account');
  await entry.write(TEXT);
  expect((await entry.read())?.bytes).toEqual(TEXT.bytes);
  const [name = ''] = await readdir(root);
  await rm(join(root, name));
  await mkdir(join(root, name));
  await entry.write(TEXT);
  expect(await readdir(root)).toEqual([name]);
});
