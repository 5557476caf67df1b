// holdover restore with --files s3://…: the records into a folder, the files into a bucket.
import { randomUUID } from 'node:crypto';
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';
import {
  type BucketServer,
  bucketMissing,
  startBucketServer,
} from '../../support/processes/bucket-server.ts';
import * as own from './open.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

describe.skipIf(bucketMissing() !== '')(`into a bucket${bucketMissing()}`, () => {
  let server: BucketServer;
  let template: own.Template;
  let backups: string;
  beforeAll(async () => {
    [server, template] = await Promise.all([startBucketServer(), own.makeTemplate()]);
    backups = await mkdtemp(join(tmpdir(), 'holdover-backups-'));
    await own.backup(template.folder, backups);
  });
  afterAll(async () => {
    await Promise.all([server?.dispose(), template?.dispose()]);
    await rm(backups, { recursive: true, force: true });
  });

  function place() {
    const prefix = randomUUID();
    const args = ['--files', `s3://files/${prefix}`, '--s3-endpoint', server.endpoint];
    return { args, env: server.credentials, objects: join(server.folderOf('files'), prefix) };
  }

  test('a prefix that a ledger uses, and a damaged backup, are refused', async () => {
    const { objects: _objects, ...bucket } = place();
    const used = await own.serve(await tempFolder('other'), bucket);
    await used.terminate();
    const again = await own.restore(backups, join(await tempFolder('restored'), 'new'), bucket);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('belongs to a ledger')]);
    const damaged = await tempFolder('backups');
    await cp(backups, damaged, { recursive: true });
    const hex = hashOf(Buffer.from('{"a": 1}')).slice('blake3:'.length);
    await own.flipByte(own.blobIn(damaged, hex));
    const { objects, ...other } = place();
    const dataDir = join(await tempFolder('restored'), 'new');
    const refused = await own.restore(damaged, dataDir, other);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('w.json')]);
    expect(await readdir(objects).catch(() => [])).toEqual([]);
  });
});
