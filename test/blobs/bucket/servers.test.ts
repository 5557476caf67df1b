// Servers and a worker that share a Redis and a bucket, each with a data directory of its own.
import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type BucketProxy, startBucketProxy } from '../../support/processes/bucket-faults.ts';
import {
  type BucketServer,
  bucketMissing,
  startBucketServer,
} from '../../support/processes/bucket-server.ts';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../../support/processes/redis.ts';
import { runCommandHere } from '../../support/processes/run-command.ts';
import { startWorker } from '../../support/processes/worker.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const GRAPH = (image: string) => ({
  1: { class_type: 'LoadImage', inputs: { image } },
  2: { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'made' } },
});

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

async function upload(url: string, name: string, bytes: Uint8Array): Promise<Response> {
  const form = new FormData();
  form.set('image', new Blob([Uint8Array.from(bytes)]), name);
  return await fetch(`${url}/upload/image`, { method: 'POST', body: form });
}

async function post(url: string, prompt: object): Promise<string> {
  const answer = await fetch(`${url}/prompt`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prompt }),
  });
  return ((await answer.json()) as { prompt_id: string }).prompt_id;
}

async function bytesOf(answer: Response): Promise<Buffer> {
  return Buffer.from(await answer.arrayBuffer());
}

type Entry = {
  readonly status: { readonly status_str: string; readonly messages: readonly unknown[] };
};

async function ended(url: string, promptId: string): Promise<Entry> {
  const entry = async () =>
    ((await (await fetch(`${url}/history/${promptId}`)).json()) as Record<string, Entry>)[promptId];
  await expect.poll(entry, { timeout: 45_000, interval: 200 }).toBeDefined();
  return (await entry()) as Entry;
}

const missing = bucketMissing() || redisMissing();

describe.skipIf(missing !== '')(`files in a bucket${missing}`, () => {
  let server: BucketServer;
  let redis: RedisServer;
  let proxy: BucketProxy;
  beforeAll(async () => {
    [server, redis] = await Promise.all([startBucketServer(), startRedis()]);
    proxy = await startBucketProxy(server.endpoint);
  });
  afterAll(async () => {
    await proxy?.close();
    await Promise.all([server?.dispose(), redis?.dispose()]);
  });

  const flags = (prefix: string) => [
    '--files',
    `s3://files/${prefix}`,
    '--s3-endpoint',
    proxy.endpoint,
  ];
  async function start(
    prefix: string,
    options: { args?: readonly string[]; env?: NodeJS.ProcessEnv; dataDir?: string } = {},
  ): Promise<Holdover> {
    const holdover = await startHoldover({
      upstream: 'embedded',
      dataDir: options.dataDir ?? (await tempFolder('data')),
      args: [...flags(prefix), ...(options.args ?? [])],
      env: { ...server.credentials, ...options.env },
    });
    onTestFinished(async () => {
      proxy.use(() => 'pass');
      await holdover.dispose();
    });
    return holdover;
  }

  test('servers and a worker share nothing but Redis and the bucket', async () => {
    const prefix = randomUUID();
    const env = { HOLDOVER_LEDGER: redis.url };
    const [one, two] = await Promise.all([
      start(prefix, { env, args: ['--concurrency', '0'] }),
      start(prefix, { env, args: ['--concurrency', '0'] }),
    ]);
    const worker = await startWorker({
      ledger: redis.url,
      dataDir: await tempFolder('data'),
      args: flags(prefix),
      env: server.credentials,
    });
    onTestFinished(() => worker.dispose());
    expect((await upload(one.url, 'in.png', PNG)).status).toBe(200);
    const entry = await ended(two.url, await post(two.url, GRAPH('in.png')));
    expect(entry.status.status_str).toBe('success');
    for (const { url } of [one, two]) {
      const made = await fetch(`${url}/view?filename=made_00001_.png&type=output`);
      expect([made.status, (await made.arrayBuffer()).byteLength > 50]).toEqual([200, true]);
    }
    const name = '100% a+b.json';
    const path = `/userdata/workflows%2F${encodeURIComponent(name)}`;
    const saved = await fetch(one.url + path, {
      method: 'POST',
      body: '{"it":1}',
    });
    expect(saved.status).toBe(200);
    const read = await fetch(two.url + path);
    expect(await read.json()).toEqual({ it: 1 });
    expect(await (await fetch(`${two.url}/userdata?dir=workflows`)).json()).toEqual([name]);
    for (const { dataDir } of [one, two])
      expect((await readdir(dataDir)).filter((name) => /^(blobs|userdata)/.test(name))).toEqual([]);
    for (const text of [one.log(), two.log(), worker.log()])
      expect(text).not.toContain(server.credentials['AWS_SECRET_ACCESS_KEY']);
  });

  describe('of one server', () => {
    const prefix = randomUUID();
    let holdover: Holdover;
    beforeAll(async () => {
      const env = server.credentials;
      holdover = await startHoldover({ upstream: 'embedded', args: flags(prefix), env });
    });
    afterEach(() => proxy.use(() => 'pass'));
    afterAll(() => holdover.dispose());

    test('a large upload comes back whole and in part, and leaves nothing in the spool folder', async () => {
      const { url, dataDir } = holdover;
      // More than two parts.
      const bytes = randomBytes(20 * 2 ** 20);
      expect((await upload(url, 'large.bin', bytes)).status).toBe(200);
      const read = await fetch(`${url}/view?filename=large.bin&type=input`);
      expect(bytes.equals(await bytesOf(read))).toBe(true);
      let breaks = 1;
      proxy.use(({ method }) =>
        method === 'GET' && breaks-- > 0 ? { resetAfterBytes: 2 ** 20 } : 'pass',
      );
      const headers = { range: `bytes=100-${10 * 2 ** 20}` };
      const part = await fetch(`${url}/view?filename=large.bin&type=input`, { headers });
      expect(bytes.subarray(100, 10 * 2 ** 20 + 1).equals(await bytesOf(part))).toBe(true);
      expect(breaks).toBeLessThan(1);
      expect(await readdir(join(dataDir, 'spool'))).toEqual([]);
    });

    test('while the bucket is away calls are answered 503, and nothing is lost', async () => {
      const { url } = holdover;
      expect((await upload(url, 'in.png', PNG)).status).toBe(200);
      proxy.use(() => 'reset');
      const refused = await upload(url, 'other.png', randomBytes(100));
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
      const unread = await fetch(`${url}/view?filename=in.png&type=input`);
      expect([unread.status, unread.headers.get('retry-after')]).toEqual([503, '5']);
      const promptId = await post(url, GRAPH('in.png'));
      proxy.use(() => 'pass');
      expect((await ended(url, promptId)).status.status_str).toBe('success');
      expect((await fetch(`${url}/view?filename=in.png&type=input`)).status).toBe(200);
      expect(holdover.log()).toContain('bucket.call_failed');
    });

    test('each fault of a bucket has its answer, and the next call is served', async () => {
      const { url } = holdover;
      const bytes = randomBytes(3 * 2 ** 20);
      expect((await upload(url, 'in.bin', bytes)).status).toBe(200);
      const read = async () => {
        const answer = await fetch(`${url}/view?filename=in.bin&type=input`);
        return { status: answer.status, bytes: await bytesOf(answer) };
      };
      let breaks = 2;
      proxy.use(({ method }) =>
        method === 'GET' && breaks-- > 0 ? { resetAfterBytes: 2 ** 20 } : 'pass',
      );
      const resumed = await read();
      expect([resumed.status, bytes.equals(resumed.bytes), breaks < 0]).toEqual([200, true, true]);
      const refusals = [
        { status: 503, code: 'SlowDown' },
        { status: 403, code: 'ExpiredToken' },
      ];
      for (const refusal of refusals) {
        proxy.use(() => refusal);
        expect((await read()).status).toBe(503);
      }
      proxy.use(({ method }) => (method === 'GET' ? 'wrong bytes' : 'pass'));
      await expect(read()).rejects.toThrow();
      proxy.use(() => 'pass');
      expect(bytes.equals((await read()).bytes)).toBe(true);
      await rm(join(server.folderOf('files'), prefix, 'blobs'), { recursive: true });
      expect((await read()).status).toBe(404);
    });
  });

  test('a link of --view redirect leads to the bucket, which check reads, and without which no start is made', async () => {
    const prefix = randomUUID();
    const dataDir = await tempFolder('data');
    const holdover = await start(prefix, { dataDir, args: ['--view', 'redirect'] });
    await upload(holdover.url, 'in.png', PNG);
    await expectLeadsToBucket(holdover.url);
    const env = server.credentials;
    const where = ['--data-dir', dataDir, ...flags(prefix)];
    expect(await runCommandHere(['check', ...where], env)).toMatchObject({ code: 0 });
    await holdover.terminate();
    await expect(startHoldover({ upstream: 'embedded', dataDir })).rejects.toThrow(
      /are in a bucket: give --files s3:/,
    );
    const object = (await readdir(join(server.folderOf('files'), prefix, 'blobs')))[0] ?? '';
    await rm(join(server.folderOf('files'), prefix, 'blobs', object), { recursive: true });
    const damaged = await runCommandHere(['check', ...where], env);
    expect([damaged.code, damaged.stdout]).toEqual([1, expect.stringContaining('missing')]);
  });

  /** A link opens its file there, at no other address; a page is never shown by it. */
  async function expectLeadsToBucket(url: string): Promise<void> {
    await upload(url, 'page.html', Buffer.from('<script>1</script>'));
    const view = (name: string) =>
      fetch(`${url}/api/view?filename=${name}&type=input`, { redirect: 'manual' });
    const picture = await view('in.png');
    expect(picture.status).toBe(302);
    const location = picture.headers.get('location') ?? '';
    expect(location.startsWith(`${proxy.endpoint}/files/`)).toBe(true);
    const opened = await fetch(location);
    expect(opened.headers.get('content-type')).toBe('image/png');
    expect(PNG.equals(await bytesOf(opened))).toBe(true);
    // Signed for its host: at another address it opens nothing.
    const elsewhere = await fetch(location.replace(proxy.endpoint, server.endpoint));
    expect(elsewhere.status).toBe(403);
    const page = await fetch((await view('page.html')).headers.get('location') ?? '');
    expect(page.headers.get('content-type')).toBe('application/octet-stream');
    expect(page.headers.get('content-disposition')).toMatch(/^attachment; /);
    expect((await view('absent.png')).status).toBe(404);
  }
});
