import { Command } from 'ioredis';
import { expect, test } from 'vitest';
import { clusterPartitions, singlePartition } from '../../src/redis/redis-partitions.ts';
import { createQueueKeys } from '../../src/upstreams/distributed-state/redis-keys.ts';

const PREFIX = 'holdover:';
const SLOTS = 16_384;
const slotOf = (key: string): number => new Command('get', [key]).getSlot();

test('the partitions of a cluster have equal shares of its slots', () => {
  const { users } = clusterPartitions(PREFIX);
  const share = SLOTS / users.length;
  const shares = users.map(({ prefix }) => Math.floor(slotOf(`${prefix}prompt:a`) / share));
  expect(shares).toEqual(users.map((_, i) => i));
});

test('users are spread over the partitions, and each stays in its partition', () => {
  const { users, indexOf } = clusterPartitions(PREFIX);
  const counts = users.map(() => 0);
  for (let i = 0; i < 32_000; i++) counts[indexOf(`user ${i}`)]!++;
  expect(Math.min(...counts)).toBeGreaterThan(850);
  expect(Math.max(...counts)).toBeLessThan(1150);
  expect(['', 'local', 'ann', 'ben'].map(indexOf)).toEqual([2, 26, 13, 28]);
  expect(users.map(({ prefix }) => prefix).slice(0, 3)).toEqual([
    'holdover:{10}:',
    'holdover:{263}:',
    'holdover:{25}:',
  ]);
});

test('all keys of the queue, and of BullMQ, have one tag', () => {
  const keys = createQueueKeys(clusterPartitions(PREFIX));
  const { publish: _, ledgerIds, ...others } = keys;
  for (const key of Object.values(others)) {
    const text = typeof key === 'string' ? key : key('a', 'b');
    expect(text).toMatch(/^holdover:\{queue\}:/);
  }
  expect(ledgerIds).toHaveLength(34);
  expect(ledgerIds.slice(0, 3)).toEqual(['holdover:id', 'holdover:{queue}:id', 'holdover:{10}:id']);
  expect(keys.bullPrefix).toBe('holdover:{queue}:bull');
});

test('no key of a single Redis has a tag, and every key has its earlier name', () => {
  const partitions = singlePartition(PREFIX, 0);
  const only = { prefix: PREFIX, channels: PREFIX, publish: 'PUBLISH' };
  expect(partitions).toMatchObject({ ...only, queue: only, users: [only] });
  expect(partitions.indexOf('ann')).toBe(0);
  const keys = { bullPrefix: 'holdover:bull', ledgerIds: ['holdover:id'] };
  expect(createQueueKeys(partitions)).toMatchObject(keys);
});
