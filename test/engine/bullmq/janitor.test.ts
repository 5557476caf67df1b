import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/lib/clock.ts';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { createFolderBlobs } from '../../../src/blobs/folder/folder-blobs.ts';
import { openRedisLedger } from '../../../src/ledger/redis/redis-ledger.ts';
import { createSharedBlobs } from '../../../src/engine/bullmq/shared-blobs.ts';
import { QueueKeys } from '../../../src/engine/bullmq/redis-keys.ts';
import { DEFAULT_LIMITS } from '../../../src/engine/job-engine.ts';
import { createJanitor } from '../../../src/engine/bullmq/janitor.ts';
import { openRedis } from '../../../src/redis/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { useRedis } from './open.ts';
import { tempFolder } from '../../support/graphs/v1-folders.ts';

const HEX = 'ab'.repeat(32);
/** Bytes this ledger knows nothing of. */
const STRANGE = `ab${'cd'.repeat(31)}`;

/** A Redis with the id of the ledger, whose scripts answer that this process has the lease. */
function fakeRedis() {
  const scripts: Record<string, () => Promise<string>> = {};
  const defineCommand = (name: string) => void (scripts[name] = async () => 'token');
  return Object.assign(scripts, { defineCommand, exists: async () => 1, set: async () => null });
}

/** The files that a janitor removes which is over its budget, while a job is submitted that reads one of them. */
async function removedFiles(): Promise<readonly string[]> {
  const log = silentLogger();
  const removed: string[] = [];
  const asset = (id: string) => ({ id, jobId: null, filePath: `input/${id}.png`, sizeBytes: 1 });
  const assets = ['a', 'b', 'c'].map(asset);
  const extrasJson = '{"targets":[],"reads":["b"],"attempts":0}';
  const rest = { provenanceJson: null, metadataJson: null, errorJson: null };
  const job = { id: 'j', extrasJson, workflowJson: '{}', outputsJson: '[]', ...rest };
  const left = () => assets.filter(({ id }) => !removed.includes(id));
  const janitor = createJanitor({
    ledger: {
      jobs: {
        unfinished: async () => (removed.length > 0 ? [job] : []),
        expiredBy: async () => [],
      },
      assets: {
        expiredBy: async () => [],
        oldest: async () => left(),
        totalBytes: async () => left().length,
      },
      keys: { expire: async () => {} },
    },
    redis: fakeRedis(),
    keys: new QueueKeys({ prefix: 'p:', channels: 'p:' }),
    jobFiles: {
      assets: {
        removeUnused: async ({ id }: { id: string }, isInUse: (id: string) => Promise<boolean>) =>
          !(await isInUse(id)) && removed.push(id) > 0,
      },
      blobs: { finishRemovals: async () => {} },
    },
    queue: { add: async () => {} },
    // Each removal takes a second.
    clock: { ...systemClock, now: () => 1 + removed.length * 1001 },
    log,
    limits: { assetBudgetBytes: 0, sweepIntervalMs: 100_000 },
  } as never);
  janitor.start();
  await janitor.close();
  return removed;
}

test('files over the budget stay when a job that reads them was submitted meanwhile', async () => {
  expect(await removedFiles()).toEqual(['a', 'c']);
});

const redisServer = redisMissing() === '' ? useRedis() : undefined;

test.skipIf(!redisServer).each([
  ['that was emptied removes no file', undefined, [HEX, STRANGE]],
  [
    'that is complete removes bytes that have had no record for too long, and no others',
    'an id',
    [STRANGE],
  ],
])(`the janitor of a ledger %s${redisMissing()}`, async (_, id, left) => {
  const log = silentLogger();
  const links = openRedis(redisServer?.().url ?? '', { log });
  await links.commands.flushall();
  const keys = new QueueKeys(links);
  if (id !== undefined) await links.commands.set(keys.ledgerId, id);
  const ledger = openRedisLedger({ links });
  onTestFinished(async () => {
    await ledger.close();
    await links.close();
  });
  const dataDir = await tempFolder('data');
  const folder = join(dataDir, 'blobs', HEX.slice(0, 2));
  await mkdir(folder, { recursive: true });
  for (const name of [HEX, STRANGE]) await writeFile(join(folder, name), 'x');
  await mkdir(join(dataDir, 'blobs-unrecorded'));
  await writeFile(join(dataDir, 'blobs-unrecorded', HEX), '');
  const clock = { ...systemClock, now: () => Date.now() + 2 * 60 * 60_000 };
  const common = { redis: links.commands, keys, ledger, clock, log };
  const folderBlobs = createFolderBlobs(join(dataDir, 'blobs'));
  const blobs = createSharedBlobs({ ...common, blobs: folderBlobs });
  const janitor = createJanitor({
    ...common,
    queue: { add: async () => {} },
    jobFiles: { blobs, withLock: createKeyedMutex() } as never,
    limits: { ...DEFAULT_LIMITS, assetBudgetBytes: Infinity, sweepIntervalMs: 100_000 },
  });
  janitor.start();
  await janitor.close();
  expect(await readdir(folder)).toEqual(left);
});
