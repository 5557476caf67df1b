// Servers, workers and a bucket over a cluster of three nodes, while slots are moved from node to node.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { clusterPartitions } from '../../src/redis/redis-partitions.ts';
import { moveSlot } from '../support/processes/moved-slots.ts';
import type { RedisServer } from '../support/processes/redis.ts';
import { startStackLoad } from '../support/processes/stack-load.ts';
import { type Stack, stackMissing, startStack } from '../support/processes/stack.ts';

vi.setConfig({ testTimeout: 600_000, hookTimeout: 120_000 });

const missing = stackMissing();
const ROUNDS = 3;

describe.skipIf(missing !== '')(`servers and workers while slots are moved${missing}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ cluster: 'three-nodes' });
  });
  afterAll(async () => await stack?.dispose());

  test(`nothing is lost or doubled when all keys move ${ROUNDS} times under load`, async () => {
    const nodes = stack.cluster?.nodes ?? [];
    const { users, queue } = clusterPartitions('holdover:');
    const load = startStackLoad(stack, 'client', 4);
    await load.untilTaken();
    for (let round = 0; round < ROUNDS; round++) {
      let moved = 0;
      for (const { prefix } of [queue, ...users]) {
        const { slot, owner } = await placeOf(nodes, prefix);
        const to = nodes[(owner + 1) % nodes.length];
        const from = nodes[owner];
        if (!from || !to) throw new Error('no node has a slot');
        moved += await moveSlot(nodes, slot, [from, to]);
      }
      expect(moved).toBeGreaterThan(100);
      await load.untilTaken();
    }
    await load.stopPosting();
    await load.expectAllDone();
    const unheard = () =>
      load.clients.flatMap(({ posted: own, ends }) =>
        own.filter(({ promptId, status }) => status === 200 && !ends.has(promptId)),
      );
    await expect.poll(unheard, { timeout: 20_000 }).toEqual([]);
  });
});

async function placeOf(nodes: readonly RedisServer[], key: string) {
  const redis = new Redis(nodes[0]?.url ?? '');
  const slot = Number(await redis.call('CLUSTER', 'KEYSLOT', key));
  const ranges = (await redis.call('CLUSTER', 'SLOTS')) as [number, number, [string, number]][];
  redis.disconnect();
  const port = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][1];
  return { slot, owner: nodes.findIndex((node) => node.port === port) };
}
