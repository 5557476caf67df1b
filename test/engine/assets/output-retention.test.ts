import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { createOutputRetention } from '../../../src/engine/assets/retention.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const DAY_MS = 24 * 60 * 60_000;

/** Jobs by their expiry, and the assets that exist, by their user. */
function open(jobs: { [id: string]: number }, assets: { readonly [id: string]: string }) {
  const clock = createFakeClock(0);
  const retention = createOutputRetention({
    ledger: {
      jobs: {
        get: async (id: string) => (id in jobs ? { expiresAtMs: jobs[id] } : undefined),
        update: async (id: string, patch: { expiresAtMs: number }) =>
          void (jobs[id] = patch.expiresAtMs),
      },
      assets: { get: async (id: string) => (id in assets ? { user: assets[id] } : undefined) },
    } as never,
    withLock: createKeyedMutex(),
    limits: { retentionMs: DAY_MS },
    clock,
  });
  return { clock, jobs, retention };
}

const output = (id: string, jobId: string) => ({ id, job_id: jobId }) as never;

test('outputs that are taken from the cache are retained from now on', async () => {
  const { clock, jobs, retention } = open({ early: 1000 }, { a: 'anna' });
  await clock.advance(500);
  expect(await retention.retain([output('a', 'early')], 'anna')).toEqual(['a']);
  expect(jobs['early']).toBe(500 + DAY_MS);
});

test('outputs of a job that is gone, of no asset, or of another user are not', async () => {
  const { retention } = open({ early: 1000 }, { bobs: 'bob' });
  const outputs = [output('a', 'gone'), output('b', 'early'), output('bobs', 'early')];
  expect(await retention.retain(outputs, 'anna')).toEqual([]);
});

test('a job extends those whose outputs it lists, and never shortens them', async () => {
  const { jobs, retention } = open({ early: 1000, long: 9000, own: 1 }, {});
  const outputs = [output('a', 'early'), output('b', 'long'), output('c', 'own')];
  await retention.extend({ id: 'own', expiresAtMs: 5000, outputs } as never);
  expect(jobs).toEqual({ early: 5000, long: 9000, own: 1 });
});
