// A single server on Redis with its own engine: nothing is different for its clients.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RedisServer, redisMissing, startRedis } from '../support/processes/redis.ts';
import { createTestUser } from '../support/processes/replicas.ts';
import { growing } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

describe.skipIf(redisMissing() !== '')(`the embedded engine on Redis${redisMissing()}`, () => {
  let redis: RedisServer;
  let holdover: Holdover;
  const start = (dataDir?: string): Promise<Holdover> =>
    startHoldover({
      upstream: 'embedded',
      env: { HOLDOVER_LEDGER: redis.url },
      ...(dataDir !== undefined && { dataDir }),
    });
  beforeAll(async () => {
    redis = await startRedis();
    holdover = await start();
  });
  afterAll(async () => {
    await holdover?.dispose();
    await redis?.dispose();
  });

  test('a prompt is received from its start to its end, with every step and preview', async () => {
    const who = createTestUser();
    const recorder = await who.listen(holdover.wsUrl);
    const promptId = await who.post(holdover.url, {
      prompt: growing({ steps: 4 }),
      extra_data: { preview_method: 'auto' },
    });
    await recorder.untilDone(promptId);
    const heard = recorder.outline(promptId);
    expect(heard.slice(0, 4)).toEqual([
      'execution_start',
      'execution_cached',
      'progress_state',
      'executing:1',
    ]);
    const steps = heard.filter((name) => name.startsWith('progress:'));
    expect(steps).toEqual([1, 2, 3, 4].map((at) => `progress:${at}/4`));
    // They come by time; the last step has one.
    expect(heard).toContain('binary:1');
    expect(heard.slice(-2)).toEqual(['execution_success', 'executing:null']);
  });

  test('a server that was killed runs its job again, to its end', async () => {
    const who = createTestUser();
    const ids: string[] = [];
    for (const seed of [1, 2, 3]) {
      ids.push(await who.post(holdover.url, { prompt: growing({ seed, steps: 60 }) }));
    }
    await holdover.kill9();
    holdover = await start(holdover.dataDir);
    const recorder = await who.listen(holdover.wsUrl);
    await Promise.all(ids.map((id) => recorder.untilDone(id, 40_000)));
    const history = await who.get(`${holdover.url}/history`);
    for (const id of ids) expect(history[id].status.status_str).toBe('success');
  });
});
