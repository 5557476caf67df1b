import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { isStorageFull, isStorageUnavailable } from '../../../src/lib/storage-errors.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createCalls, openClient } from '../../../src/blobs/bucket/client.ts';
import { Objects } from '../../../src/blobs/bucket/objects.ts';
import { openBucket } from '../../../src/blobs/bucket/open-bucket.ts';
import {
  type BucketFault,
  type SeenRequest,
  startBucketProxy,
} from '../../support/processes/bucket-faults.ts';
import { bucketMissing } from '../../support/processes/bucket-server.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { spooledBytes } from '../blobs.suite.ts';
import {
  SMALL_PARTS,
  openFaultyBucket,
  openTestBucket,
  sourceAt,
  useBucketServer,
} from './open.ts';

const MIB = 2 ** 20;
const SLOW_DOWN: BucketFault = { status: 503, code: 'SlowDown' };

/** Fails the first calls that match, then no more. */
function failingFirst(
  count: number,
  fault: BucketFault,
  matches: (request: SeenRequest) => boolean = () => true,
) {
  let left = count;
  return (request: SeenRequest): BucketFault => (matches(request) && left-- > 0 ? fault : 'pass');
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.skipIf(bucketMissing() !== '')(`a bucket with faults${bucketMissing()}`, () => {
  const server = useBucketServer();
  const open = () => openFaultyBucket(server(), { sizes: SMALL_PARTS });

  describe('faults that pass', () => {
    test.each([
      ['503 SlowDown', SLOW_DOWN],
      ['500 InternalError', { status: 500, code: 'InternalError' } as const],
      ['a reset connection', 'reset' as const],
      ['a lost answer', 'lost answer' as const],
    ])('%s: calls are made again', async (_name, fault) => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(6 * MIB));
      proxy.use(failingFirst(2, fault));
      await bucket.blobs.moveIntoPlace(file);
      proxy.use(failingFirst(1, fault));
      expect(hashOf((await bucket.blobs.read(file.hash)) ?? Buffer.alloc(0))).toBe(file.hash);
      proxy.use(failingFirst(1, fault));
      await bucket.blobs.remove(file.hash);
      expect(await bucket.blobs.sizeOf(file.hash)).toBeUndefined();
    });

    test.each(['ConditionalRequestConflict', 'ExistingObjectIsDirectory'])(
      'an id that meets a 409 %s is written',
      async (code) => {
        const { bucket, proxy } = await open();
        proxy.use(failingFirst(1, { status: 409, code }, ({ method }) => method === 'PUT'));
        await bucket.identity.createId('folder.id', 'the first');
        await bucket.identity.createId('folder.id', 'the second');
        expect(await bucket.identity.readId('folder.id')).toBe('the first');
      },
    );

    test('an object that must be new is stored once, although the answer is lost', async () => {
      const { bucket, proxy } = await open();
      const put = (text: string) => bucket.objects.put('x', Buffer.from(text), { onlyNew: true });
      proxy.use(failingFirst(1, 'lost answer', ({ method }) => method === 'PUT'));
      expect(await put('mine')).toBe(true);
      proxy.use(failingFirst(1, 'lost answer', ({ method }) => method === 'PUT'));
      expect(await put('other')).toBe(false);
      expect(await put('mine')).toBe(false);
      expect(await bucket.objects.text('x')).toBe('mine');
    });

    test('processes that open an empty one at the same time have one id', async () => {
      const source = sourceAt(server().endpoint);
      const ids = Array.from({ length: 12 }, async (_, i) => {
        const { identity } = await openTestBucket(server(), { source });
        await identity.createId('folder.id', `id ${i}`);
        return await identity.readId('folder.id');
      });
      expect(new Set(await Promise.all(ids)).size).toBe(1);
    });

    test('the completion of an upload whose answer is lost counts', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(11 * MIB));
      const isCompletion = ({ method, query }: SeenRequest) =>
        method === 'POST' && query.includes('uploadId=');
      proxy.use(failingFirst(1, 'lost answer', isCompletion));
      await bucket.blobs.moveIntoPlace(file);
      expect(await bucket.blobs.sizeOf(file.hash)).toBe(11 * MIB);
    });

    test('objects that are opened and not read leave their connections to other calls', async () => {
      const { bucket } = await open();
      const file = await spooledBytes(randomBytes(2 * MIB));
      await bucket.blobs.moveIntoPlace(file);
      for (let opened = 0; opened < 64; opened += 1) {
        const range = opened % 2 === 0 ? undefined : { start: 0, end: MIB };
        (await bucket.blobs.open(file.hash, range))?.destroy();
      }
      const size = await Promise.race([bucket.blobs.sizeOf(file.hash), sleep(2000, 'hangs')]);
      expect(size).toBe(2 * MIB);
    });
  });

  describe('faults that stay', () => {
    test('a bucket that is away fails a call within its time, and is found again', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(100));
      proxy.use(() => 'reset');
      const beganAtMs = Date.now();
      const failure = await failureOf(bucket.blobs.moveIntoPlace(file));
      expect(isStorageUnavailable(failure)).toBe(true);
      expect(String(failure)).toMatch(/HeadObject of the bucket files/);
      expect(Date.now() - beganAtMs).toBeLessThan(8000);
      proxy.use(() => 'pass');
      await bucket.blobs.moveIntoPlace(file);
      expect(await bucket.blobs.sizeOf(file.hash)).toBe(100);
    });

    test('an upload that fails shows nothing under its hash, and leaves no parts', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(14 * MIB));
      const refusal = { status: 403, code: 'AccessDenied' };
      proxy.use(({ query }) => (query.includes('partNumber=2') ? refusal : 'pass'));
      expect(isStorageUnavailable(await failureOf(bucket.blobs.moveIntoPlace(file)))).toBe(true);
      proxy.use(() => 'pass');
      expect(await bucket.blobs.sizeOf(file.hash)).toBeUndefined();
      const isAbort = ({ method, query }: SeenRequest) =>
        method === 'DELETE' && query.includes('uploadId=');
      expect(proxy.seen.filter(isAbort)).toHaveLength(1);
      // No other is left to be aborted.
      await bucket.objects.abortUploads(Infinity);
      expect(proxy.seen.filter(isAbort)).toHaveLength(1);
    });

    test('parts that a killed process left are removed a day later', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(14 * MIB));
      const isPart = ({ query }: SeenRequest) => query.includes('partNumber=2');
      const isAbort = ({ method, query }: SeenRequest) =>
        method === 'DELETE' && query.includes('uploadId=');
      proxy.use((request) =>
        isPart(request) || isAbort(request) ? { status: 403, code: 'AccessDenied' } : 'pass',
      );
      await failureOf(bucket.blobs.moveIntoPlace(file));
      proxy.use(() => 'pass');
      proxy.seen.length = 0;
      await bucket.blobs.removeAbandoned();
      expect(proxy.seen.filter(isAbort)).toEqual([]);
      await bucket.objects.abortUploads(Date.now() + 60_000);
      expect(proxy.seen.filter(isAbort)).toHaveLength(1);
    });

    test('a bucket without room counts as a full disk', async () => {
      const { bucket, proxy } = await open();
      proxy.use(({ method }) =>
        method === 'PUT' ? { status: 507, code: 'InsufficientStorage' } : 'pass',
      );
      const file = await spooledBytes(randomBytes(9));
      expect(isStorageFull(await failureOf(bucket.blobs.moveIntoPlace(file)))).toBe(true);
    });
  });

  describe('a start is refused in one line', () => {
    type Start = {
      readonly more?: object;
      readonly fault?: (request: SeenRequest) => BucketFault;
      readonly env?: Readonly<Record<string, string>>;
    };
    const refusalOf = async ({ more, fault = () => 'pass', env = {} }: Start): Promise<string> => {
      const proxy = await startBucketProxy(server().endpoint);
      onTestFinished(() => proxy.close());
      proxy.use(fault);
      const before = Object.keys(env).map((name) => [name, process.env[name]] as const);
      onTestFinished(() => before.forEach(([name, value]) => vi.stubEnv(name, value)));
      for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
      const source = sourceAt(proxy.endpoint, { prefix: 'p/', ...more });
      const failure = await failureOf(openBucket({ source, log: silentLogger() }));
      const text = failure instanceof Error ? failure.message : 'it started';
      expect(text).not.toContain(server().credentials['AWS_SECRET_ACCESS_KEY']);
      expect(text).not.toContain('\n');
      return text;
    };

    test.each<[string, Start, RegExp]>([
      [
        'there is no such bucket',
        { more: { bucket: 'absent' } },
        /^--files s3:\/\/absent\/p cannot be used: .*NoSuchBucket/,
      ],
      ['the secret is wrong', { env: { AWS_SECRET_ACCESS_KEY: 'wrong' } }, /SignatureDoesNotMatch/],
      [
        'the access key is unknown',
        { env: { AWS_ACCESS_KEY_ID: 'stranger' } },
        /AccessKey|UserNotFound/,
      ],
      [
        'the credentials have expired',
        { fault: () => ({ status: 400, code: 'ExpiredToken' }) },
        /ExpiredToken/,
      ],
      ['it is in another region', { more: { region: 'mars-1' } }, /region/],
      [
        'it may be read and not written',
        {
          fault: ({ method }) =>
            method === 'PUT' ? { status: 403, code: 'AccessDenied' } : 'pass',
        },
        /PutObject .*AccessDenied/,
      ],
      [
        'there are no credentials',
        { env: { AWS_ACCESS_KEY_ID: '', AWS_EC2_METADATA_DISABLED: 'true' } },
        /no credentials/,
      ],
    ])('when %s', async (_name, start, text) => {
      expect(await refusalOf(start)).toMatch(text);
    });

    test('when its server does not answer', async () => {
      const endpoint = `http://127.0.0.1:${await freePort()}`;
      expect(await refusalOf({ more: { endpoint } })).toMatch(/had no answer: .*ECONNREFUSED/);
    });
  });
});

describe('a server that answers late or not at all', () => {
  async function objectsAt(server: ReturnType<typeof createServer>): Promise<Objects> {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'key');
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'secret');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const source = sourceAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const s3 = openClient(source, 5000, systemClock);
    onTestFinished(() => {
      s3.destroy();
      server.close().closeAllConnections();
      vi.unstubAllEnvs();
    });
    return new Objects(s3, source, createCalls('files', silentLogger()));
  }

  test('a call without an answer fails after five seconds', async () => {
    const objects = await objectsAt(createServer(() => {}));
    const beganAtMs = Date.now();
    expect(isStorageUnavailable(await failureOf(objects.stat('x')))).toBe(true);
    expect(Date.now() - beganAtMs).toBeLessThan(8000);
  });

  test('downloads whose clients do not read on keep no other call waiting', async () => {
    const server = createServer((request, response) => {
      response.writeHead(200, { 'content-length': 2 * MIB });
      if (request.method === 'HEAD') response.end();
      else response.write(Buffer.alloc(MIB));
    });
    const objects = await objectsAt(server);
    await Promise.all(Array.from({ length: 80 }, () => objects.open('large')));
    expect((await objects.stat('x'))?.sizeBytes).toBe(2 * MIB);
  });
});
