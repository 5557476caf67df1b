import { expect, test } from 'vitest';
import { createKeyedMutex } from '../../../src/lib/concurrency.ts';
import { extendProducers, retainOutputs } from '../../../src/engine/assets/retention.ts';

/** Jobs by their expiry, and the assets that exist, by their user. */
function open(jobs: { [id: string]: number }, assets: { readonly [id: string]: string }) {
  const deps = {
    ledger: {
      jobs: {
        get: async (id: string) => (id in jobs ? { expiresAtMs: jobs[id] } : undefined),
        update: async (id: string, patch: { expiresAtMs: number }) =>
          void (jobs[id] = patch.expiresAtMs),
      },
      assets: { get: async (id: string) => (id in assets ? { user: assets[id] } : undefined) },
    } as never,
    withLock: createKeyedMutex(),
    untilMs: 5000,
  };
  return { jobs, deps };
}

const output = (id: string, jobId: string) => ({ id, job_id: jobId }) as never;

test('outputs that are taken from the cache are retained', async () => {
  const { jobs, deps } = open({ early: 1000 }, { a: 'anna' });
  expect(await retainOutputs([output('a', 'early')], 'anna', deps)).toEqual(['a']);
  expect(jobs['early']).toBe(5000);
});

test('outputs of a job that is gone, of no asset, or of another user are not', async () => {
  const { deps } = open({ early: 1000 }, { bobs: 'bob' });
  const outputs = [output('a', 'gone'), output('b', 'early'), output('bobs', 'early')];
  expect(await retainOutputs(outputs, 'anna', deps)).toEqual([]);
});

test('a job extends those whose outputs it lists, and never shortens them', async () => {
  const { jobs, deps } = open({ early: 1000, long: 9000, own: 1 }, {});
  const outputs = [output('a', 'early'), output('b', 'long'), output('c', 'own')];
  await extendProducers({ id: 'own', expiresAtMs: 5000, outputs } as never, deps);
  expect(jobs).toEqual({ early: 5000, long: 9000, own: 1 });
});
