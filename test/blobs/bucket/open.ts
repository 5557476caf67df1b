import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import type { BucketSource } from '../../../src/config/files.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import {
  type OpenBucketOptions,
  type OpenedBucket,
  openBucket,
} from '../../../src/blobs/bucket/open-bucket.ts';
import { type BucketProxy, startBucketProxy } from '../../support/processes/bucket-faults.ts';
import { type BucketServer, startBucketServer } from '../../support/processes/bucket-server.ts';

/** A bucket server for all tests of a file. The environment has its credentials. */
export function useBucketServer(): () => BucketServer {
  let server: BucketServer | undefined;
  beforeAll(async () => {
    server = await startBucketServer();
    for (const [name, value] of Object.entries(server.credentials)) vi.stubEnv(name, value);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await server?.dispose();
  });
  return () => {
    if (!server) throw new Error('there is no bucket server yet');
    return server;
  };
}

/** Its bucket under a prefix that no other test has. */
export function sourceAt(endpoint: string, more: Partial<BucketSource> = {}): BucketSource {
  return {
    kind: 'bucket',
    bucket: 'files',
    prefix: `test-${randomUUID()}/`,
    region: 'us-east-1',
    endpoint,
    ...more,
  };
}

/** Small parts, so that small files are uploaded and copied in several. */
export const SMALL_PARTS = { partBytes: 5 * 2 ** 20, copyBytes: 5 * 2 ** 20 };

export async function openTestBucket(
  server: BucketServer,
  options: Partial<OpenBucketOptions> = {},
): Promise<OpenedBucket> {
  const bucket = await openBucket({
    source: sourceAt(server.endpoint),
    log: silentLogger(),
    ...options,
  });
  onTestFinished(() => bucket.close());
  return bucket;
}

/** A bucket behind a proxy that can fail. */
export async function openFaultyBucket(
  server: BucketServer,
  options: Partial<OpenBucketOptions> = {},
): Promise<{
  readonly bucket: OpenedBucket;
  readonly proxy: BucketProxy;
  readonly prefix: string;
}> {
  const proxy = await startBucketProxy(server.endpoint);
  onTestFinished(() => proxy.close());
  const source = sourceAt(proxy.endpoint);
  const bucket = await openTestBucket(server, { source, ...options });
  return { bucket, proxy, prefix: source.prefix };
}
