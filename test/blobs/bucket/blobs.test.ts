import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { hashOf } from '../../../src/lib/hash.ts';
import { bucketMissing } from '../../support/processes/bucket-server.ts';
import { blobsSuite, bytesOf, spooledBytes } from '../blobs.suite.ts';
import { SMALL_PARTS, openFaultyBucket, openTestBucket, useBucketServer } from './open.ts';

describe.skipIf(bucketMissing() !== '')(`a bucket${bucketMissing()}`, () => {
  const server = useBucketServer();

  blobsSuite('a bucket', async () => (await openTestBucket(server())).blobs);

  test('large bytes are uploaded and copied in parts', async () => {
    const { bucket, proxy } = await openFaultyBucket(server(), { sizes: SMALL_PARTS });
    const bytes = randomBytes(12 * 2 ** 20);
    const file = await spooledBytes(bytes);
    await bucket.blobs.moveIntoPlace(file);
    const name = await bucket.blobs.setAside(file.hash);
    await bucket.blobs.putBack(name ?? '');
    const parts = proxy.seen.filter(({ query }) => query.includes('partNumber='));
    // It is uploaded, and copied away and back.
    expect(parts).toHaveLength(9);
    expect(hashOf((await bytesOf(await bucket.blobs.open(file.hash))) ?? Buffer.alloc(0))).toBe(
      file.hash,
    );
  });

  test('outputs of a job go there', async () => {
    const { blobs } = await openTestBucket(server(), { sizes: SMALL_PARTS });
    for (const length of [0, 100, 11 * 2 ** 20]) {
      const bytes = randomBytes(length);
      await blobs.put(await spooledBytes(bytes));
      await blobs.put(await spooledBytes(bytes));
      expect(bytes.equals((await blobs.read(hashOf(bytes))) ?? Buffer.from('gone'))).toBe(true);
    }
  });
});
