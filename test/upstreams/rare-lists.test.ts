import { expect, test } from 'vitest';
import type { Blobs } from '../../src/upstreams/blobs.ts';
import { listLeftoversRarely } from '../../src/upstreams/rare-lists.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const HOUR_MS = 60 * 60_000;

test('leftovers are listed at first and then every six hours, each kind for itself', async () => {
  const calls: string[] = [];
  const hash = `blake3:${'0'.repeat(64)}`;
  const blobs = {
    async *listUnrecorded() {
      calls.push('unrecorded');
      yield { hash, sinceMs: 0 };
    },
    async *listAside() {
      calls.push('aside');
      yield { name: 'x', hash, sinceMs: 0 };
    },
    removeAbandoned: async () => void calls.push('abandoned'),
    remove: async () => void calls.push('remove'),
  } as unknown as Blobs;
  const clock = createFakeClock();
  const rare = listLeftoversRarely(blobs, clock);
  async function sweep(): Promise<number> {
    let found = 0;
    for await (const _one of rare.listUnrecorded()) found += 1;
    for await (const _one of rare.listAside()) found += 1;
    await rare.removeAbandoned();
    await rare.remove(hash);
    return found;
  }
  expect(await sweep()).toBe(2);
  expect(calls.splice(0)).toEqual(['unrecorded', 'aside', 'abandoned', 'remove']);
  for (let minute = 0; minute < 6 * 60 - 1; minute += 1) {
    await clock.advance(60_000);
    expect(await sweep()).toBe(0);
  }
  expect(new Set(calls.splice(0))).toEqual(new Set(['remove']));
  await clock.advance(HOUR_MS);
  expect(await sweep()).toBe(2);
});
