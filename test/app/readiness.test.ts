import { chmod, mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createJobQueueReason, neededParts } from '../../src/app/readiness.ts';
import type { Services } from '../../src/app/services.ts';
import type { NeededParts } from '../../src/v1/health.ts';
import { tempFolder } from '../support/graphs/v1-folders.ts';

type FilesStub = {
  readonly checkDataDir?: () => void;
  readonly spool?: string;
  readonly folderId?: () => Promise<string | undefined>;
};

async function partsOf({ checkDataDir = () => {}, spool, folderId }: FilesStub = {}) {
  const bucket = folderId && { identity: { readId: folderId } };
  const dir = { spool: spool ?? (await tempFolder('spool')), bucketId: bucket && 'id' };
  const store = { links: undefined, files: { bucket }, dir, checkDataDir };
  const config = { upstream: { kind: 'embedded' }, ledger: { kind: 'sqlite' } };
  const ledger = { prompts: { get: async () => undefined } };
  const services: unknown = { config, storage: { ledger, store } };
  return neededParts(services as Services);
}

test('a folder that can be written, and nothing is left in it', async () => {
  const spool = await tempFolder('spool');
  const { files, queue, ledger } = await partsOf({ spool });
  expect([files?.kind, await files?.check()]).toEqual(['folder', undefined]);
  expect([await queue?.check(), await ledger?.check()]).toEqual([undefined, undefined]);
  expect(await readdir(spool)).toEqual([]);
});

test('a folder that is gone, or cannot be written', async () => {
  const gone = () => {
    throw new Error('gone');
  };
  const lost = await partsOf({ checkDataDir: gone });
  expect(await lost.files?.check()).toEqual({ status: 'failed', reason: 'lost' });
  const absent = await partsOf({ spool: join(await tempFolder('spool'), 'absent') });
  expect(await absent.files?.check()).toEqual({ status: 'failed', reason: 'not_writable' });
});

test.runIf(process.getuid?.() !== 0)('a folder that is read-only', async () => {
  const spool = join(await tempFolder('spool'), 'read-only');
  await mkdir(spool);
  await chmod(spool, 0o500);
  const { files } = await partsOf({ spool });
  expect(await files?.check()).toEqual({ status: 'failed', reason: 'not_writable' });
});

test('a bucket that is there, is another one, or does not answer', async () => {
  const same = await partsOf({ folderId: async () => 'id' });
  expect([same.files?.kind, await same.files?.check()]).toEqual(['bucket', undefined]);
  const other = await partsOf({ folderId: async () => undefined });
  expect(await other.files?.check()).toEqual({ status: 'failed', reason: 'lost' });
  const away = await partsOf({ folderId: () => Promise.reject(new Error('away')) });
  await expect(away.files?.check()).rejects.toThrow('away');
});

type QueueCheck = NonNullable<NeededParts['queue']>['check'];

describe('why a job waits in the queue', () => {
  const reasonOf = (check: QueueCheck | undefined, health: () => Promise<{ ok: boolean }>) => {
    const parts = check && { queue: { kind: 'redis', check } };
    const services: unknown = { upstream: { runner: { jobs: { health } } } };
    return createJobQueueReason((parts ?? {}) as NeededParts, services as Services)();
  };
  const away = () => Promise.reject(new Error('away'));

  test.each([
    ['nothing is in its way', async () => undefined, 'workers_busy'],
    ['no worker', async () => ({ status: 'degraded', reason: 'no_worker' }) as const, 'no_worker'],
    ['the queue does not answer', away, 'queue_unreachable'],
  ])('%s', async (_, check, reason) => {
    expect(await reasonOf(check, away)).toBe(reason);
  });

  test('a job of its own is delayed, while the queue is well', async () => {
    const queue = { kind: 'redis', check: async () => undefined };
    const ask = (isDelayed: () => Promise<boolean>) => {
      const parts = { queue: { ...queue, isDelayed } };
      return createJobQueueReason(parts, { upstream: { runner: {} } } as never);
    };
    expect(await ask(async () => true)('job')).toBe('retry_delayed');
    expect(await ask(async () => false)('job')).toBe('workers_busy');
    expect(await ask(away)('job')).toBe('workers_busy');
    expect(await ask(async () => true)(null)).toBe('workers_busy');
  });

  test.each([
    ['the service is well', async () => ({ ok: true }), 'not_started'],
    ['the service is not well', async () => ({ ok: false }), 'upstream_unhealthy'],
    ['the service does not answer', away, 'upstream_unhealthy'],
  ])('%s', async (_, health, reason) => {
    expect(await reasonOf(undefined, health)).toBe(reason);
  });
});
