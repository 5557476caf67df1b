// Both engines with their files in a bucket show what they show with a folder.
import { randomUUID } from 'node:crypto';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { openRedis } from '../../../src/redis/redis.ts';
import { openRedisLedger } from '../../../src/ledger/redis/redis-ledger.ts';
import type { AssetRow } from '../../../src/ledger/ledger.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { createQueueKeys } from '../../../src/upstreams/distributed-state/redis-keys.ts';
import { createSharedBlobs } from '../../../src/upstreams/distributed-state/shared-blobs.ts';
import { spooled } from '../../support/app/jobs.ts';
import { bucketMissing } from '../../support/processes/bucket-server.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, startQueued, useRedis } from '../distributed/open.ts';
import { TINY_WORKFLOWS as workflows, startEngine } from '../embedded/open.ts';
import { jobsSuite } from '../jobs.suite.ts';
import { openTestBucket, useBucketServer } from './open.ts';

const missing = bucketMissing() || redisMissing();

describe.skipIf(missing !== '')(`engines over a bucket${missing}`, () => {
  const server = useBucketServer();
  const redis = useRedis();

  jobsSuite('the embedded engine over a bucket', async () => {
    const { blobs } = await openTestBucket(server());
    return { api: await startEngine({ blobs }), workflows };
  });

  test('workers over a bucket run a job, and its output is there', async () => {
    const { blobs } = await openTestBucket(server());
    const engine = await startQueued(await openQueueSetup(redis()), { blobs });
    const caller = { user: 'anna' };
    const job = await engine.submit(caller, { workflow: workflows.saving(7), extraData: {} });
    const id = job.ok ? job.value.id : '';
    const outputs = async () => {
      const found = await engine.get(caller, id);
      return found.ok ? found.value.outputs : [];
    };
    await expect.poll(async () => (await outputs()).length, { timeout: 15_000 }).toBe(1);
    expect(await blobs.isInPlace((await outputs())[0]?.hash ?? '')).toBe(true);
  });

  test('bytes that one process removes while another begins to use them stay', async () => {
    const { blobs } = await openTestBucket(server());
    const prefix = `test-${randomUUID()}:`;
    const opened = openRedis(redis().url, { log: silentLogger() });
    onTestFinished(() => opened.close());
    const links = { ...opened, prefix, channels: prefix };
    const ledger = openRedisLedger({ links });
    const file = await spooled('wanted');
    const row: AssetRow = {
      id: 'a',
      user: 'anna',
      hash: file.hash,
      sizeBytes: file.sizeBytes,
      contentType: 'text/plain',
      filePath: 'input/a',
      tagsJson: null,
      createdAtMs: 0,
      expiresAtMs: null,
      jobId: null,
    };
    await blobs.moveIntoPlace(file);
    // Another process records the bytes after this one has found no record, before it takes them away.
    const racing = {
      ...blobs,
      async setAside(hash: string) {
        await ledger.assets.insert(row);
        return await blobs.setAside(hash);
      },
    };
    const keys = createQueueKeys(links);
    const shared = { redis: links.commands, keys, ledger, clock: systemClock };
    await createSharedBlobs({ ...shared, blobs: racing }).remove(file.hash);
    expect(await blobs.isInPlace(file.hash)).toBe(true);
    await ledger.assets.remove('a');
    await createSharedBlobs({ ...shared, blobs }).remove(file.hash);
    expect(await blobs.isInPlace(file.hash)).toBe(false);
  });
});
