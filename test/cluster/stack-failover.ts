// Servers, workers and a bucket over a cluster whose nodes have a replica each: a node dies again and again, and what
// was its replica takes its place.
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { RedisServer } from '../support/processes/redis.ts';
import { startStackLoad } from '../support/processes/stack-load.ts';
import { type Stack, stackMissing, startStack } from '../support/processes/stack.ts';

vi.setConfig({ testTimeout: 900_000, hookTimeout: 120_000 });

const missing = stackMissing();
const FAILOVERS = Number(process.env['HOLDOVER_TEST_FAILOVERS'] ?? 10);

describe.skipIf(missing !== '')(`servers and workers over nodes with a replica${missing}`, () => {
  let stack: Stack;
  beforeAll(async () => {
    stack = await startStack({ cluster: 'with-replicas' });
  });
  afterAll(async () => await stack?.dispose());

  const everyNode = (): readonly RedisServer[] => [
    ...(stack.cluster?.nodes ?? []),
    ...(stack.cluster?.replicas ?? []),
  ];

  test(`${FAILOVERS} failovers under load: nothing is lost, doubled or refused`, async () => {
    const load = startStackLoad(stack, 'client', 4);
    for (let i = 0; i < FAILOVERS; i++) {
      await load.untilTaken();
      const masters = await nodesThat(everyNode(), isMasterWithReplica);
      expect(masters).toHaveLength(3);
      const victim = masters[i % masters.length];
      await victim?.kill9();
      const others = everyNode().filter((node) => node !== victim);
      await expect
        .poll(async () => (await nodesThat(others, isMaster)).length, { timeout: 60_000 })
        .toBe(3);
      await load.untilTaken();
      await victim?.restart();
      const ready = async () => (await nodesThat(everyNode(), isMasterWithReplica)).length;
      await expect.poll(ready, { timeout: 60_000 }).toBe(3);
    }
    await load.untilTaken();
    const posted = await load.stopPosting();
    expect(posted.filter(({ status }) => status !== 200)).toEqual([]);
    await load.expectAllDone();
    const unheard = () =>
      load.clients.flatMap(({ posted: own, ends }) =>
        own.filter(({ promptId }) => !ends.has(promptId)),
      );
    await expect.poll(unheard, { timeout: 20_000 }).toEqual([]);
  });
});

const isMaster = (info: string): boolean => info.includes('role:master');
const isMasterWithReplica = (info: string): boolean =>
  isMaster(info) && /^slave0:.*state=online/m.test(info);

/** Those whose section `replication` of INFO says so. */
async function nodesThat(nodes: readonly RedisServer[], isSo: (info: string) => boolean) {
  const found: RedisServer[] = [];
  for (const node of nodes) {
    const redis = new Redis(node.url);
    if (isSo(await redis.info('replication'))) found.push(node);
    redis.disconnect();
  }
  return found;
}
