import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { hashOf } from '../../../src/lib/hash.ts';
import { isStorageFull, isStorageUnavailable } from '../../../src/lib/storage-errors.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { createBucketClient } from '../../../src/upstreams/bucket/client.ts';
import { createSigner } from '../../../src/upstreams/bucket/signer.ts';
import { openBucket } from '../../../src/upstreams/bucket/open-bucket.ts';
import { type BucketFault, startBucketProxy } from '../../support/processes/bucket-faults.ts';
import { bucketMissing } from '../../support/processes/bucket-server.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { bytesOf, spooledBytes } from '../blobs.suite.ts';
import {
  SMALL_PARTS,
  openFaultyBucket,
  openTestBucket,
  sourceAt,
  useBucketServer,
} from './open.ts';

const MIB = 2 ** 20;
const SLOW_DOWN: BucketFault = { status: 503, code: 'SlowDown' };

/** Waits take no time; the time they stand for passes. */
function skippingClock(): Clock {
  let skippedMs = 0;
  return {
    ...systemClock,
    now: () => Date.now() + skippedMs,
    async sleep(ms) {
      skippedMs += ms;
    },
  };
}

/** Fails the first calls that match, then no more. */
function failingFirst(
  count: number,
  fault: BucketFault,
  matches: (request: { method: string; key: string; query: string }) => boolean = () => true,
) {
  let left = count;
  return (request: { method: string; key: string; query: string }): BucketFault =>
    matches(request) && left-- > 0 ? fault : 'pass';
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.skipIf(bucketMissing() !== '')(`a bucket with faults${bucketMissing()}`, () => {
  const server = useBucketServer();
  const open = () =>
    openFaultyBucket(server(), { deadlineClock: skippingClock(), sizes: SMALL_PARTS });

  describe('faults that pass', () => {
    test.each([
      ['503 SlowDown', SLOW_DOWN],
      ['500 InternalError', { status: 500, code: 'InternalError' } as const],
      ['a reset connection', 'reset' as const],
      ['a lost answer', 'lost answer' as const],
    ])('%s: calls are made again', async (_name, fault) => {
      const { bucket, proxy } = await open();
      const bytes = randomBytes(6 * MIB);
      const file = await spooledBytes(bytes);
      proxy.use(failingFirst(4, fault));
      await bucket.blobs.moveIntoPlace(file);
      proxy.use(failingFirst(2, fault));
      expect(hashOf((await bucket.blobs.read(file.hash)) ?? Buffer.alloc(0))).toBe(file.hash);
      proxy.use(failingFirst(2, fault));
      await bucket.blobs.remove(file.hash);
      expect(await bucket.blobs.isInPlace(file.hash)).toBe(false);
    });

    test.each(['ConditionalRequestConflict', 'ExistingObjectIsDirectory'])(
      'an id that meets a 409 %s is written',
      async (code) => {
        const { bucket, proxy } = await open();
        proxy.use(failingFirst(1, { status: 409, code }, ({ method }) => method === 'PUT'));
        await bucket.identity.createId('folder.id', 'the first');
        expect(await bucket.identity.readId('folder.id')).toBe('the first');
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
      for (let round = 0; round < 10; round += 1) {
        const source = sourceAt(server().endpoint);
        const ids = Array.from({ length: 6 }, async (_, i) => {
          const { identity } = await openTestBucket(server(), { source });
          await identity.createId('folder.id', `id ${i}`);
          return await identity.readId('folder.id');
        });
        expect(new Set(await Promise.all(ids)).size).toBe(1);
      }
    });

    test('the completion of an upload whose answer is lost counts', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(11 * MIB));
      const isCompletion = ({ method, query }: { method: string; query: string }) =>
        method === 'POST' && query.includes('uploadId=');
      proxy.use(failingFirst(1, 'lost answer', isCompletion));
      await bucket.blobs.moveIntoPlace(file);
      expect(await bucket.blobs.sizeOf(file.hash)).toBe(11 * MIB);
    });

    test.each(['HEAD', 'PUT'])(
      'a job waits with a %s longer than a caller would',
      async (method) => {
        const { bucket, proxy } = await open();
        const bytes = randomBytes(1000);
        const awayForLong = () =>
          failingFirst(9, SLOW_DOWN, (request) => request.method === method);
        proxy.use(awayForLong());
        await bucket.blobs.put(hashOf(bytes), bytes);
        proxy.use(awayForLong());
        expect(await bucket.blobs.isInPlace(hashOf(bytes))).toBe(true);
      },
    );

    test('a read whose connection is reset continues where it was', async () => {
      const { bucket, proxy } = await open();
      const bytes = randomBytes(4 * MIB);
      const file = await spooledBytes(bytes);
      await bucket.blobs.moveIntoPlace(file);
      proxy.use(failingFirst(3, { resetAfterBytes: MIB }, ({ method }) => method === 'GET'));
      expect(
        bytes.equals((await bytesOf(await bucket.blobs.open(file.hash))) ?? Buffer.alloc(0)),
      ).toBe(true);
      proxy.use(failingFirst(1, { resetAfterBytes: 1000 }, ({ method }) => method === 'GET'));
      const part = await bytesOf(await bucket.blobs.open(file.hash, { start: 7, end: 3 * MIB }));
      expect(bytes.subarray(7, 3 * MIB + 1).equals(part ?? Buffer.alloc(0))).toBe(true);
    });

    test('objects that are opened and not read leave their connections to other calls', async () => {
      const { bucket } = await open();
      const file = await spooledBytes(randomBytes(2 * MIB));
      await bucket.blobs.moveIntoPlace(file);
      for (let opened = 0; opened < 64; opened += 1) {
        (await bucket.blobs.open(file.hash))?.destroy();
        (await bucket.blobs.open(file.hash, { start: 0, end: MIB }))?.destroy();
      }
      const size = await Promise.race([bucket.blobs.sizeOf(file.hash), sleep(2000, 'hangs')]);
      expect(size).toBe(2 * MIB);
    });

    test('the clock of a machine may be wrong', async () => {
      const clock = { ...systemClock, now: () => Date.now() + 60 * 60_000 };
      const bucket = await openTestBucket(server(), { clock });
      expect(await bucket.blobs.isInPlace(hashOf(Buffer.from('x')))).toBe(false);
      const file = await spooledBytes(randomBytes(100));
      await bucket.blobs.moveIntoPlace(file);
      expect(await bucket.blobs.sizeOf(file.hash)).toBe(100);
    });
  });

  describe('faults that stay', () => {
    test('a bucket that is away fails a call within its time, and is found again', async () => {
      const { bucket, proxy } = await openFaultyBucket(server());
      const file = await spooledBytes(randomBytes(100));
      proxy.use(() => 'reset');
      const beganAtMs = Date.now();
      const failure = await failureOf(bucket.blobs.moveIntoPlace(file));
      expect(isStorageUnavailable(failure)).toBe(true);
      expect(Date.now() - beganAtMs).toBeLessThan(8000);
      proxy.use(() => 'pass');
      await bucket.blobs.moveIntoPlace(file);
      expect(await bucket.blobs.isInPlace(file.hash)).toBe(true);
    });

    test('an upload that fails shows nothing under its hash, and leaves no parts', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(14 * MIB));
      proxy.use(({ query }) => (query.includes('partNumber=2') ? SLOW_DOWN : 'pass'));
      expect(isStorageUnavailable(await failureOf(bucket.blobs.moveIntoPlace(file)))).toBe(true);
      proxy.use(() => 'pass');
      expect(await bucket.blobs.sizeOf(file.hash)).toBeUndefined();
      expect(await bucket.objects.unfinished('')).toEqual([]);
    });

    test.each(['ExpiredToken', 'InvalidAccessKeyId', 'AccessDenied'])(
      '%s while it runs: the files are away, not gone',
      async (code) => {
        const { bucket, proxy } = await open();
        proxy.use(() => ({ status: 403, code }));
        const failure = await failureOf(bucket.blobs.read(hashOf(Buffer.from('x'))));
        expect(isStorageUnavailable(failure)).toBe(true);
      },
    );

    test('a bucket without room counts as a full disk', async () => {
      const { bucket, proxy } = await open();
      proxy.use(({ method }) =>
        method === 'PUT' ? { status: 507, code: 'InsufficientStorage' } : 'pass',
      );
      const failure = await failureOf(
        bucket.blobs.moveIntoPlace(await spooledBytes(randomBytes(9))),
      );
      expect(isStorageFull(failure)).toBe(true);
    });

    test('bytes that are not those of the hash are never given out whole', async () => {
      const { bucket, proxy } = await open();
      const file = await spooledBytes(randomBytes(300_000));
      await bucket.blobs.moveIntoPlace(file);
      proxy.use(({ method }) => (method === 'GET' ? 'wrong bytes' : 'pass'));
      await expect(bucket.blobs.read(file.hash)).rejects.toThrow('holds other bytes');
      await expect(bytesOf(await bucket.blobs.open(file.hash))).rejects.toThrow(
        'holds other bytes',
      );
    });

    test('bytes that were damaged on their way there are refused by the bucket', async () => {
      const { bucket } = await open();
      const key = `blobs/xx/${'0'.repeat(64)}`;
      const body = Buffer.from('sent');
      const sent = bucket.objects.put(key, body);
      body[0] = 0;
      // The hash is taken before the bytes are sent: these are changed in between.
      await failureOf(sent);
      expect([undefined, 4]).toContain(await bucket.objects.head(key));
    });
  });

  describe('a start is refused in one line', () => {
    const refusal = async (fault: BucketFault): Promise<string> => {
      const proxy = await startBucketProxy(server().endpoint);
      onTestFinished(() => proxy.close());
      proxy.use(() => fault);
      return await startFailure(proxy.endpoint);
    };
    const startFailure = async (
      endpoint: string,
      more: object = {},
      env = server().credentials,
    ) => {
      const source = sourceAt(endpoint, { prefix: 'p/', ...more });
      const failure = await failureOf(
        openBucket({ source, env, log: silentLogger(), deadlineClock: skippingClock() }),
      );
      const text = failure instanceof Error ? failure.message : 'it started';
      expect(text).not.toContain(server().credentials['AWS_SECRET_ACCESS_KEY']);
      expect(text).not.toContain('\n');
      return text;
    };

    test('when there is no such bucket', async () => {
      expect(await startFailure(server().endpoint, { bucket: 'absent' })).toBe(
        '--files s3://absent/p cannot be used: there is no such bucket (NoSuchBucket)',
      );
    });

    test('when its server does not answer', async () => {
      const text = await startFailure(`http://127.0.0.1:${await freePort()}`);
      expect(text).toMatch(
        /^--files s3:\/\/files\/p cannot be used: .*cannot be reached.*ECONNREFUSED/,
      );
    });

    test('when the secret is wrong', async () => {
      const env = { ...server().credentials, AWS_SECRET_ACCESS_KEY: 'wrong-secret' };
      expect(await startFailure(server().endpoint, {}, env)).toMatch(/the secret key is wrong/);
    });

    test('when the access key is unknown', async () => {
      const env = { ...server().credentials, AWS_ACCESS_KEY_ID: 'stranger' };
      expect(await startFailure(server().endpoint, {}, env)).toMatch(/access key is not known/);
    });

    test('when the credentials have expired', async () => {
      expect(await refusal({ status: 400, code: 'ExpiredToken' })).toMatch(/have expired/);
    });

    test('when it is in another region', async () => {
      const fault = { status: 400, code: 'AuthorizationHeaderMalformed', region: 'eu-west-9' };
      expect(await refusal(fault)).toMatch(
        /it is in the region eu-west-9: set AWS_REGION=eu-west-9/,
      );
      expect(await startFailure(server().endpoint, { region: 'mars-1' })).toMatch(/region/);
    });

    test('when it may be read and not written', async () => {
      const proxy = await startBucketProxy(server().endpoint);
      onTestFinished(() => proxy.close());
      proxy.use(({ method }) =>
        method === 'PUT' ? { status: 403, code: 'AccessDenied' } : 'pass',
      );
      expect(await startFailure(proxy.endpoint)).toMatch(/do not allow/);
    });

    test('when there are no credentials', async () => {
      expect(await startFailure(server().endpoint, {}, {})).toMatch(
        /AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set/,
      );
      expect(await startFailure(server().endpoint, {}, { AWS_ACCESS_KEY_ID: 'x' })).toMatch(
        /not the other/,
      );
    });
  });
});

test('a bucket that accepts a call and says nothing has failed after five seconds', async () => {
  const server = createServer(() => {}).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const signer = { sign: async () => ({ headers: {} }) } as never;
  const deadlineClock = createFakeClock();
  const source = sourceAt(endpoint);
  const client = createBucketClient({ ...source, signer, deadlineClock, log: silentLogger() });
  onTestFinished(() => client.close());
  const received = once(server, 'request');
  const failure = failureOf(client.send({ method: 'HEAD', key: 'x' }));
  await received;
  await deadlineClock.advance(4999);
  expect(await Promise.race([failure, sleep(20, 'waits')])).toBe('waits');
  await deadlineClock.advance(1);
  expect(isStorageUnavailable(await Promise.race([failure, sleep(2000)]))).toBe(true);
});

test('downloads whose clients do not read on keep no other call waiting', async () => {
  const server = createServer((request, response) => {
    response.writeHead(200);
    if (request.method === 'HEAD') response.end();
    else response.write(Buffer.alloc(MIB));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const source = sourceAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const signer = { sign: async () => ({ headers: {} }) } as never;
  const deadlineClock = createFakeClock();
  const client = createBucketClient({ ...source, signer, deadlineClock, log: silentLogger() });
  onTestFinished(() => client.close());
  const download = () => client.send({ method: 'GET', key: 'large' });
  await Promise.all(Array.from({ length: 80 }, download));
  expect((await client.done({ method: 'HEAD', key: 'x' })).status).toBe(200);
});

test('all calls whose credentials expired are made again with new ones', async () => {
  const server = createServer((request, response) => {
    const isExpired = request.headers.authorization?.includes('Credential=old/') === true;
    // Both calls are signed before the first is refused.
    setTimeout(() => {
      response.writeHead(isExpired ? 403 : 200);
      response.end(isExpired ? '<Error><Code>ExpiredToken</Code></Error>' : '');
    }, 20);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  let accessKeyId = 'old';
  const credentials = async ({ renew = false } = {}) => {
    if (renew) accessKeyId = 'new';
    return { accessKeyId, secretAccessKey: 'secret' };
  };
  const signer = await createSigner({ credentials, region: 'x', clock: systemClock });
  const source = sourceAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const deadlineClock = systemClock;
  const client = createBucketClient({ ...source, signer, deadlineClock, log: silentLogger() });
  onTestFinished(() => client.close());
  const calls = ['a', 'b', 'c'].map((key) => client.done({ method: 'DELETE', key }));
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([200, 200, 200]);
});
