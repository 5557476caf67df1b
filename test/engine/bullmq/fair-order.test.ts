// Whose job a worker takes next is decided by BullMQ's priorities, which follow the jobs of each user.
import { Worker } from 'bullmq';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test } from 'vitest';
import { FairQueue } from '../../../src/engine/jobs/fair-order.ts';
import { QUEUE_NAME } from '../../../src/engine/bullmq/redis-keys.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, openServices, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`turns over Redis${redisMissing()}`, () => {
  const redis = useRedis();

  /** The queue, and a worker that takes a job when the test says so. */
  async function openTurns() {
    const services = openServices(await openQueueSetup(redis()));
    const { redis: connection, keys, queue, runs } = services;
    const base = { connection, prefix: keys.bullPrefix };
    const worker = new Worker<{ user: string }>(QUEUE_NAME, undefined, base);
    onTestFinished(() => worker.close());
    const add = (id: string, user: string, order = 0) => queue.add([{ id, user, order }]);
    async function take() {
      const job = await worker.getNextJob('token', { block: false });
      if (job?.id === undefined) return undefined;
      const { fence } = (await runs.claim(job.id, 0)) as { readonly fence: number };
      const held = { id: job.id, fence };
      return {
        id: job.id,
        async end() {
          await runs.end(held, { status: 'succeeded' });
          await job.moveToCompleted(undefined, 'token', false);
        },
      };
    }
    async function remove(id: string): Promise<void> {
      expect(await queue.remove(id)).toBe(true);
      const { fence } = (await runs.seize(id)) as { readonly fence: number };
      await runs.end({ id, fence }, { status: 'canceled' });
    }
    return { ...services, add, take, remove };
  }

  test('random jobs run in the order of a single process, and in the order that was shown', async () => {
    const act = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          user: fc.constantFrom('a', 'b', 'c'),
          order: fc.integer({ min: -2, max: 2 }),
        }),
      },
      { weight: 2, arbitrary: fc.constant('take' as const) },
      { weight: 1, arbitrary: fc.constant('end' as const) },
      { weight: 1, arbitrary: fc.constant('withdraw' as const) },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 30 }), async (acts) => {
        const shared = await openTurns();
        const queue = new FairQueue<{ id: string; user: string; order: number }>();
        const running: { job: { id: string; user: string; order: number }; end(): unknown }[] = [];
        for (const [i, what] of acts.entries()) {
          if (typeof what === 'object') {
            queue.add({ id: `j${i}`, ...what });
            await shared.add(`j${i}`, what.user, what.order);
          } else if (what === 'take') {
            const job = queue.take();
            const taken = await shared.take();
            expect(taken?.id).toBe(job?.id);
            if (job && taken) running.push({ job, end: () => taken.end() });
          } else if (what === 'end') {
            const over = running.shift();
            if (!over) continue;
            queue.ended(over.job);
            await over.end();
          } else {
            const last = queue.waiting().at(-1);
            if (!last) continue;
            queue.remove(last.id);
            await shared.remove(last.id);
          }
          const ids = queue.waiting().map(({ id }) => id);
          expect(await shared.queue.positions(ids)).toEqual(ids.map((_, place) => place));
        }
      }),
      { numRuns: 25 },
    );
  });

  test('the state of ended jobs is removed', async () => {
    const { links, keys, add, take, remove } = await openTurns();
    for (const id of ['a', 'b']) await add(id, 'anna');
    const job = await take();
    await remove('b');
    await job?.end();
    const left = await links.commands.keys(`${keys.prefix}*`);
    const isOfQueue = /:(queue:(jobs-of|turns)|bull:.*:(a|b|active|prioritized|stalled)$)/;
    expect(left.filter((key) => isOfQueue.test(key))).toEqual([]);
  });
});
