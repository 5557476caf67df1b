// `holdover migrate` between a folder and a bucket of a server of another make, killed and resumed.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashFile } from '../../src/lib/hash.ts';
import { startBucketProxy } from '../support/processes/bucket-faults.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';
import {
  type BucketServer,
  bucketMissing,
  startBucketServer,
} from '../support/processes/bucket-server.ts';
import { runHoldover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { runCommandHere } from '../support/processes/run-command.ts';
import {
  type Template,
  blobIn,
  blobsIn,
  flipByte,
  inDatabase,
  makeTemplate,
  serve,
  serverStateOf,
} from './backup/open.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const missing = bucketMissing() || redisMissing();

describe.skipIf(missing !== '')(`files from a folder to a bucket and back${missing}`, () => {
  let server: BucketServer;
  let redis: RedisServer;
  let template: Template;
  beforeAll(async () => {
    [server, redis, template] = await Promise.all([
      startBucketServer(),
      startRedis(),
      makeTemplate(),
    ]);
  });
  afterAll(async () => {
    await Promise.all([server?.dispose(), redis?.dispose(), template?.dispose()]);
  });

  const newUrl = () => `s3://files/${randomUUID()}`;
  const bucketFolder = (url: string) =>
    join(server.folderOf('files'), url.slice('s3://files/'.length));
  const at = () => ['--s3-endpoint', server.endpoint];
  const bucketFlags = (url: string) => ['--files', url, ...at()];

  async function migrate(
    dataDir: string,
    [from, to]: readonly [string, string],
    { crashAt, args = [] }: { crashAt?: string; args?: readonly string[] } = {},
  ) {
    const flags = ['--from-files', from, '--to-files', to, ...at(), '--data-dir', dataDir, ...args];
    if (crashAt === undefined) return runCommandHere(['migrate', ...flags], server.credentials);
    const env = { ...server.credentials, HOLDOVER_CRASH_AT: crashAt };
    return runHoldover(['migrate', ...flags], env);
  }

  const start = (dataDir: string, url: string, env: NodeJS.ProcessEnv = {}) =>
    serve(dataDir, { args: bucketFlags(url), env: { ...server.credentials, ...env } });
  const refusedStart = async (dataDir: string, args: readonly string[] = []) => {
    const flags = ['--data-dir', dataDir, '--port', '0', ...args];
    return (await runHoldover(flags, server.credentials)).stderr;
  };

  /** Path and hash of each file of users and each id. */
  async function contentOf(folder: string): Promise<Record<string, string>> {
    const content: Record<string, string> = {};
    for (const name of ['blobs', 'blobs-unrecorded', 'blobs-leaving', 'userdata'])
      for (const entry of await readdir(join(folder, name), {
        recursive: true,
        withFileTypes: true,
      }).catch(() => [])) {
        const path = join(entry.parentPath, entry.name);
        if (entry.isFile()) content[path.slice(folder.length + 1)] = (await hashFile(path)).hash;
      }
    for (const name of ['folder.id', 'ledger.id'])
      content[name] = await readFile(join(folder, name), 'utf8').catch(() => 'absent');
    return content;
  }

  const moveOldFilesAway = async (dataDir: string) => {
    for (const name of ['blobs', 'blobs-unrecorded', 'blobs-leaving', 'userdata'])
      await rename(join(dataDir, name), join(dataDir, `old-${name}`)).catch(() => {});
  };

  test('killed at each step it goes on, and the source stays as it is', async () => {
    const dataDir = await template.copy();
    const unrecorded = 'a'.repeat(64);
    await mkdir(join(dataDir, 'blobs-unrecorded'), { recursive: true });
    await writeFile(join(dataDir, 'blobs-unrecorded', unrecorded), '');
    const before = await contentOf(dataDir);
    const url = newUrl();
    for (const crashAt of ['copy-file:1', 'copy-file:3', 'copy-verified', 'copy-named']) {
      expect((await migrate(dataDir, ['folder', url], { crashAt })).code).toBeNull();
      expect(await contentOf(dataDir)).toEqual(before);
      expect(await refusedStart(dataDir, bucketFlags(url))).toContain('was interrupted: run the');
    }
    expect((await migrate(dataDir, ['folder', url], { crashAt: 'copy-bound' })).code).toBeNull();
    expect(await refusedStart(dataDir)).toContain(`give --files ${url} as before`);
    expect(await refusedStart(dataDir, bucketFlags(url))).toContain('was interrupted: run the');
    const count = Object.keys(before).length - 2;
    expect(await migrate(dataDir, ['folder', url])).toMatchObject({
      code: 0,
      stdout: `Copied and verified ${count} files. Start the servers with --files ${url}.\n`,
    });
    expect(await contentOf(dataDir)).toEqual(before);
    expect(await contentOf(bucketFolder(url))).toEqual(before);
    const again = await migrate(dataDir, ['folder', url]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('already')]);

    const onBucket = await start(dataDir, url);
    expect(await serverStateOf(onBucket)).toEqual(template.state);
    await onBucket.terminate();

    const inBucket = await contentOf(bucketFolder(url));
    const full = await migrate(dataDir, [url, 'folder']);
    expect([full.code, full.stderr]).toEqual([1, expect.stringContaining('is not empty')]);
    await moveOldFilesAway(dataDir);
    for (const crashAt of ['copy-file:1', 'copy-file:2', 'copy-verified', 'copy-named']) {
      expect((await migrate(dataDir, [url, 'folder'], { crashAt })).code).toBeNull();
      expect(await refusedStart(dataDir)).toContain(`give --files ${url} as before`);
    }
    expect((await migrate(dataDir, [url, 'folder'], { crashAt: 'copy-bound' })).code).toBeNull();
    expect(await refusedStart(dataDir)).toContain('was interrupted: run the');
    expect(await migrate(dataDir, [url, 'folder'])).toMatchObject({ code: 0 });
    expect(await contentOf(bucketFolder(url))).toEqual(inBucket);
    expect(await contentOf(dataDir)).toEqual(inBucket);
    expect((await readdir(dataDir)).filter((name) => /^cop|files.url/.test(name))).toEqual([]);
    const inFolder = await serve(dataDir);
    expect(await serverStateOf(inFolder)).toEqual(template.state);
    await inFolder.terminate();
    const isInFolder = 'are in that folder: leave --files out';
    expect(await refusedStart(dataDir, bucketFlags(url))).toContain(isInFolder);
    const backup = ['backup', await tempFolder('backups'), '--data-dir', dataDir] as const;
    const stale = await runCommandHere([...backup, ...bucketFlags(url)], server.credentials);
    expect([stale.code, stale.stderr]).toEqual([1, expect.stringContaining(isInFolder)]);
  });

  test('what the source changed after an interruption is in the copy, and no more', async () => {
    const dataDir = await template.copy();
    const url = newUrl();
    expect((await migrate(dataDir, ['folder', url], { crashAt: 'copy-verified' })).code).toBeNull();
    const live = await serve(dataDir);
    const saved = `${live.url}/userdata/workflows%2F`;
    await fetch(`${saved}w.json?overwrite=true`, { method: 'POST', body: '{"a": 22}' });
    await fetch(`${saved}new.json`, { method: 'POST', body: '{}' });
    await fetch(`${saved}w.json/move/workflows%2Fmoved.json`, { method: 'POST' });
    await live.terminate();
    expect(await migrate(dataDir, ['folder', url])).toMatchObject({ code: 0 });
    expect(await contentOf(bucketFolder(url))).toEqual(await contentOf(dataDir));
    const names = await readdir(join(bucketFolder(url), 'userdata', 'local', 'workflows'));
    expect(names.toSorted()).toEqual(['moved.json', 'new.json']);
  });

  test('killed from outside in the middle of a large file it goes on', async () => {
    const dataDir = await template.copy();
    const live = await serve(dataDir);
    const form = new FormData();
    form.set('image', new Blob([randomBytes(40 * 2 ** 20)]), 'large.bin');
    expect((await fetch(`${live.url}/upload/image`, { method: 'POST', body: form })).status).toBe(
      200,
    );
    await live.terminate();
    const url = newUrl();
    const proxy = await startBucketProxy(server.endpoint);
    onTestFinished(() => proxy.close());
    const flags = ['--from-files', 'folder', '--to-files', url, '--s3-endpoint', proxy.endpoint];
    const child = spawn(process.execPath, [MAIN, 'migrate', ...flags, '--data-dir', dataDir], {
      env: { ...process.env, ...server.credentials },
    });
    const isPart = ({ query }: { query: string }) => query.includes('partNumber=');
    await expect.poll(() => proxy.seen.some(isPart), { interval: 5 }).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(proxy.seen.some(({ query }) => /^\??uploadId=/.test(query))).toBe(false);
    expect(await migrate(dataDir, ['folder', url])).toMatchObject({ code: 0 });
    expect(await contentOf(bucketFolder(url))).toEqual(await contentOf(dataDir));
  });

  test('a ledger in Redis keeps its files, wherever they are, and so does one that is migrated', async () => {
    const dataDir = await template.copy();
    const url = newUrl();
    expect(await migrate(dataDir, ['folder', url])).toMatchObject({ code: 0 });
    const where = ['--data-dir', dataDir, ...bucketFlags(url)];
    const toRedis = ['--from', 'sqlite', '--to', redis.url] as const;
    const forgotten = await runCommandHere(['migrate', ...toRedis, '--data-dir', dataDir]);
    expect([forgotten.code, forgotten.stderr]).toEqual([1, expect.stringContaining(url)]);
    expect(
      await runCommandHere(['migrate', ...toRedis, ...where], server.credentials),
    ).toMatchObject({ code: 0 });
    const env = { HOLDOVER_LEDGER: redis.url };
    const onRedis = await start(dataDir, url, env);
    expect(await serverStateOf(onRedis)).toEqual(template.state);
    const inUse = await migrate(dataDir, [url, 'folder'], { args: ['--ledger', redis.url] });
    expect([inUse.code, inUse.stderr]).toEqual([1, expect.stringContaining('is in use')]);
    await onRedis.terminate();
    await moveOldFilesAway(dataDir);
    expect(
      await migrate(dataDir, [url, 'folder'], { args: ['--ledger', redis.url] }),
    ).toMatchObject({ code: 0 });
    expect(await serverStateOf(await serve(dataDir, { env }))).toEqual(template.state);
  });

  describe('is refused', () => {
    test('while a server has the folder', async () => {
      const { dataDir } = await serve(await template.copy());
      const { code, stderr } = await migrate(dataDir, ['folder', newUrl()]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('in use by another Holdover')]);
    });

    test('with damaged bytes, which are named, and nothing is given away', async () => {
      const dataDir = await template.copy();
      const [hex = ''] = await blobsIn(dataDir);
      await flipByte(blobIn(dataDir, hex));
      const url = newUrl();
      const { code, stderr } = await migrate(dataDir, ['folder', url]);
      expect([code, stderr]).toEqual([1, expect.stringContaining(hex)]);
      expect(await refusedStart(dataDir, bucketFlags(url))).toContain('was interrupted: run the');
      await serve(dataDir);
    });

    test('into a prefix that another ledger uses, or has begun to use', async () => {
      const url = newUrl();
      const used = await start(await tempFolder('other'), url);
      await used.terminate();
      const dataDir = await template.copy();
      expect((await migrate(dataDir, ['folder', url])).stderr).toContain('belongs to a ledger');
      const begun = newUrl();
      await migrate(dataDir, ['folder', begun], { crashAt: 'copy-file:1' });
      const other = await startHoldover({ upstream: 'embedded' });
      await other.terminate();
      const { code, stderr } = await migrate(other.dataDir, ['folder', begun]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('another copy')]);
      await rm(other.dataDir, { recursive: true });
    });

    test('with the files of another ledger', async () => {
      const dataDir = await template.copy();
      inDatabase(dataDir, "UPDATE identity SET value = 'another' WHERE name = 'id'");
      const { code, stderr } = await migrate(dataDir, ['folder', newUrl()]);
      expect([code, stderr]).toEqual([1, expect.stringContaining('does not have the files of')]);
    });

    test.each([
      ['two folders', ['--from-files', 'folder', '--to-files', 'folder']],
      ['two buckets', ['--from-files', 's3://files/a', '--to-files', 's3://files/b']],
      ['one of a pair', ['--from-files', 'folder']],
      ['both pairs', ['--from-files', 'folder', '--to-files', 's3://files/a', '--from', 'sqlite']],
      ['--files', ['--from-files', 'folder', '--to-files', 's3://files/a', '--files', 'folder']],
      ['--ledger', ['--from', 'sqlite', '--to', 'redis://x', '--ledger', 'sqlite']],
    ])('with %s', async (_what, args) => {
      expect((await runCommandHere(['migrate', ...args])).code).toBe(2);
    });
  });
});
