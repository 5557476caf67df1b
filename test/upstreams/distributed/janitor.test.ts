import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createFolderBlobs } from '../../../src/upstreams/folder/folder-blobs.ts';
import { openRedisLedger } from '../../../src/ledger/redis/redis-ledger.ts';
import { createSharedBlobs } from '../../../src/upstreams/distributed-state/shared-blobs.ts';
import { createQueueKeys } from '../../../src/upstreams/distributed-state/redis-keys.ts';
import { Janitor } from '../../../src/upstreams/distributed/janitor.ts';
import { openRedis } from '../../../src/redis/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { tempDir } from '../embedded/open.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { useRedis } from './open.ts';

const HEX = 'ab'.repeat(32);
/** Bytes this ledger knows nothing of. */
const STRANGE = `ab${'cd'.repeat(31)}`;

const redis = redisMissing() === '' ? useRedis() : undefined;

test.skipIf(!redis).each([
  ['that was emptied removes no file', undefined, [HEX, STRANGE]],
  [
    'that is whole removes what it owed a record for too long, and nothing else',
    'an id',
    [STRANGE],
  ],
])(`the janitor of a ledger %s${redisMissing()}`, async (_, id, left) => {
  const log = silentLogger();
  const links = openRedis(redis?.().url ?? '', { log });
  await links.commands.flushall();
  if (id !== undefined) await links.commands.set('holdover:id', id);
  const ledger = openRedisLedger({ links });
  onTestFinished(async () => {
    await ledger.close();
    await links.close();
  });
  const dataDir = await tempDir();
  const folder = join(dataDir, 'blobs', HEX.slice(0, 2));
  await mkdir(folder, { recursive: true });
  for (const name of [HEX, STRANGE]) await writeFile(join(folder, name), 'x');
  await mkdir(join(dataDir, 'blobs-unrecorded'));
  await writeFile(join(dataDir, 'blobs-unrecorded', HEX), '');
  const shared = { redis: links.commands, keys: createQueueKeys(links.partitions), ledger };
  const clock = { ...systemClock, now: () => Date.now() + 2 * 60 * 60_000 };
  const blobs = createSharedBlobs({
    ...shared,
    clock,
    blobs: createFolderBlobs(join(dataDir, 'blobs')),
  });
  const janitor = new Janitor({
    ...shared,
    blobs,
    clock,
    log,
    jobFiles: {} as never,
    queue: { add: async () => {} } as never,
    assetBudgetBytes: Infinity,
    sweepIntervalMs: 100_000,
  });
  janitor.start();
  await janitor.close();
  expect(await readdir(folder)).toEqual(left);
});
