import { workerLost } from '../../../src/engine/jobs/job-lifecycle.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { JobQueue } from '../../../src/engine/jobs/job-queue.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { jobQueueSuite } from '../job-queue.suite.ts';
import { openQueueSetup, openServices, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`the queue of BullMQ${redisMissing()}`, () => {
  const redis = useRedis();

  /** The queue, with runs that are claimed and ended as those of jobs are. */
  async function openQueue(options: Parameters<typeof openServices>[1] = {}): Promise<JobQueue> {
    const { queue, runs } = openServices(await openQueueSetup(redis()), options);
    const fenced = async (id: string, nowMs?: number) => {
      const claim = nowMs === undefined ? await runs.seize(id) : await runs.claim(id, nowMs);
      return { id, fence: (claim as { readonly fence: number }).fence };
    };
    return {
      add: (jobs) => queue.add(jobs),
      async remove(id) {
        if (!(await queue.remove(id))) return false;
        await runs.end(await fenced(id), { status: 'canceled' });
        return true;
      },
      cancel: (id) => queue.cancel(id),
      positions: (ids) => queue.positions(ids),
      waiting: (user) => queue.waiting(user),
      nextOrder: () => queue.nextOrder(),
      close: () => queue.close(),
      worker: (options) =>
        queue.worker({
          ...options,
          async run(id, stop) {
            const held = await fenced(id, 0);
            const outcome = await options.run(id, stop);
            if (outcome === 'interrupted') await runs.requeue(held, 1);
            else await runs.end(held, { status: 'succeeded' });
            return outcome;
          },
        }),
    };
  }

  jobQueueSuite('in one process', () => openQueue());

  test('a submission does not wait for a stalled Redis', async () => {
    const queue = await openQueue({ timeoutMs: 200 });
    expect((await queue.waiting('ann')).own).toBe(0);
    redis().pause();
    onTestFinished(() => redis().resume());
    for (const ask of [queue.waiting('ann'), queue.nextOrder()])
      await expect(ask).rejects.toThrow('timed out');
  });

  test('a cancel whose message was lost reaches the run after the connection is back', async () => {
    let reconnect = (): void => {};
    const queue = await openQueue({
      pubsub: {
        subscribe: async () => {},
        onReconnect: (recheck) => void (reconnect = recheck),
      },
    });
    const stops: AbortSignal[] = [];
    const worker = queue.worker({
      concurrency: 2,
      run: (_id, stop) =>
        new Promise((resolve) => {
          stops.push(stop);
          stop.addEventListener('abort', () => resolve('over'));
        }),
      giveUp: async () => {},
    });
    onTestFinished(() => worker.close());
    await queue.add(['a', 'b'].map((id) => ({ id, user: 'anna', order: 0 })));
    worker.start();
    await expect.poll(() => stops.length).toBe(2);
    await queue.cancel('b');
    reconnect();
    const reasons = () => stops.map(({ reason = 'runs' }) => reason);
    await expect.poll(() => new Set(reasons())).toEqual(new Set(['canceled', 'runs']));
  });

  test('a worker that was never started may lack its subscription', async () => {
    const queue = await openQueue({
      pubsub: {
        subscribe: () => Promise.reject(new Error('Connection is closed.')),
        onReconnect: () => {},
      },
    });
    const worker = queue.worker({
      concurrency: 1,
      run: async () => 'over',
      giveUp: async () => {},
    });
    // A rejection without a handler ends the process.
    await worker.close();
  });

  test('a run that fails for an internal reason is repeated later, and its slot is free meanwhile', async () => {
    const queue = await openQueue();
    const begun: string[] = [];
    const worker = queue.worker({
      concurrency: 1,
      async run(id) {
        begun.push(id);
        if (id === 'a' && begun.length === 1) throw new Error('the ledger is away');
        return 'over';
      },
      giveUp: async () => {},
    });
    onTestFinished(() => worker.close());
    for (const id of ['a', 'b']) await queue.add([{ id, user: 'anna', order: 0 }]);
    worker.start();
    await expect.poll(() => begun).toEqual(['a', 'b', 'a']);
  });

  test('a job whose workers die repeatedly fails, even if none began a node', async () => {
    const { queue, redis: raw, keys } = openServices(await openQueueSetup(redis()));
    await queue.add([{ id: 'a', user: 'anna', order: 0 }]);
    // As twenty workers leave it, and one more that took it.
    await raw.hset(`${keys.ofBull}a`, 'stc', 20);
    await raw.zrem(keys.waiting, 'a');
    await raw.lpush(`${keys.ofBull}active`, 'a');
    const ends: unknown[] = [];
    const worker = queue.worker({
      concurrency: 1,
      run: async (id) => {
        ends.push(`ran ${id}`);
        return 'over';
      },
      giveUp: async (id, reason) => void ends.push([id, reason]),
    });
    onTestFinished(() => worker.close());
    worker.start();
    await expect.poll(() => ends).toEqual([['a', workerLost(21)]]);
  });
});
