// Emptied under running processes, a ledger has nothing of what they know.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Redis } from 'ioredis';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { type WorkerProcess, startWorker } from '../support/processes/worker.ts';

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

/** Sooner than the next look. */
const SOON = { timeout: 3000 };
const LATER = { timeout: 12_000 };

describe.skipIf(redisMissing() !== '')(`a Redis that was emptied${redisMissing()}`, () => {
  let redis: RedisServer;
  let admin: Redis;
  let server: Holdover;
  let worker: WorkerProcess;
  beforeEach(async () => {
    redis = await startRedis();
    admin = new Redis(redis.url);
    const front = ['--ledger', redis.url, '--concurrency', '0'];
    server = await startHoldover({ upstream: 'embedded', args: front });
    worker = await startWorker({ ledger: redis.url, dataDir: server.dataDir });
  });
  afterEach(async () => {
    admin?.disconnect();
    await worker?.dispose();
    await server?.dispose();
    await redis?.dispose();
  });

  async function expectEnds(within: { timeout: number }, reason: string): Promise<void> {
    for (const one of [server, worker]) {
      await expect.poll(() => one.log(), within).toContain(`"msg":"stopping: ${reason}`);
      expect(one.log()).toContain(`"message":"${reason}"`);
      expect(one.log().match(/"level":60/g)).toHaveLength(1);
      expect(await one.terminate()).toBe(1);
    }
  }

  test('ends its processes; one that dies and comes back with its data ends none', async () => {
    const connections = async () => String(await admin.client('LIST')).split('\n').length;
    const before = await connections();
    await redis.kill9();
    await redis.restart();
    const id = () => admin.get('holdover:id');
    await expect.poll(id, SOON).toMatch(/^[\w-]{36}$/);
    // Each process looks as soon as it is connected again.
    await expect.poll(connections, LATER).toBeGreaterThanOrEqual(before);
    await expect(fetch(`${server.url}/history`)).resolves.toMatchObject({ status: 200 });
    for (const one of [server, worker]) expect(one.log()).not.toContain('"level":60');
    await admin.flushall();
    await expectEnds(LATER, 'redis has lost the data of this ledger');
  });
});
