import { Queue, Worker } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openRedis } from '../../../src/redis/redis.ts';
import { silentLogger } from '../../../src/observability/log.ts';
import { QueueCondition } from '../../../src/engine/bullmq/queue-condition.ts';
import { QUEUE_NAME, QueueKeys } from '../../../src/engine/bullmq/redis-keys.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { redisMissing } from '../../support/processes/redis.ts';
import { openQueueSetup, openWithPrefix, useRedis } from './open.ts';

describe.skipIf(redisMissing() !== '')(`the condition of the queue${redisMissing()}`, () => {
  const redis = useRedis();

  async function open() {
    const links = openWithPrefix(await openQueueSetup(redis()));
    const clock = createFakeClock();
    const keys = new QueueKeys(links);
    const connection = links.commands;
    const queue = new Queue(QUEUE_NAME, { connection, prefix: keys.bullPrefix });
    onTestFinished(async () => {
      await queue.close();
      await links.close();
    });
    const condition = new QueueCondition(links, clock);
    return { clock, queue, keys, connection, condition };
  }

  type Opened = Awaited<ReturnType<typeof open>>;

  async function startWorker(
    { connection, keys }: Opened,
    work: () => Promise<void> = async () => {},
  ): Promise<Worker> {
    const worker = new Worker(QUEUE_NAME, work, { connection, prefix: keys.bullPrefix });
    onTestFinished(() => worker.close(true));
    await worker.waitUntilReady();
    return worker;
  }

  test('without a worker, and with one', async () => {
    const opened = await open();
    expect(await opened.condition.obstacle()).toBe('no_worker');
    const worker = await startWorker(opened);
    await expect.poll(() => opened.condition.obstacle()).toBeUndefined();
    await worker.close();
    await expect.poll(() => opened.condition.obstacle()).toBe('no_worker');
  });

  test('a job that failed is delayed until its next run; others and unknown ones are not', async () => {
    const opened = await open();
    await startWorker(opened, async () => {
      throw new Error('an internal reason');
    });
    const backoff = { type: 'fixed', delay: 60_000 };
    await opened.queue.add('job', {}, { jobId: 'job-1', attempts: 2, backoff });
    await expect.poll(() => opened.condition.isDelayed('job-1')).toBe(true);
    expect(await opened.condition.obstacle()).toBeUndefined();
    await opened.queue.pause();
    await opened.queue.add('job', {}, { jobId: 'job-2' });
    expect(
      await Promise.all(['job-2', 'job-3'].map((id) => opened.condition.isDelayed(id))),
    ).toEqual([false, false]);
  });

  test('paused, and resumed', async () => {
    const opened = await open();
    await startWorker(opened);
    await opened.queue.pause();
    expect(await opened.condition.obstacle()).toBe('paused');
    await opened.queue.resume();
    await expect.poll(() => opened.condition.obstacle()).toBeUndefined();
  });

  test('stalled only when jobs wait for 30 seconds while none runs', async () => {
    const opened = await open();
    const worker = await startWorker(opened);
    await worker.pause();
    await opened.queue.add('job', {}, { priority: 5 });
    expect(await opened.condition.obstacle()).toBeUndefined();
    await opened.clock.advance(29_000);
    expect(await opened.condition.obstacle()).toBeUndefined();
    await opened.clock.advance(1000);
    expect(await opened.condition.obstacle()).toBe('stalled');
    void worker.resume();
    await expect.poll(() => opened.condition.obstacle()).toBeUndefined();
    await opened.clock.advance(60_000);
    expect(await opened.condition.obstacle()).toBeUndefined();
  });

  test('is unknown where Redis does not list its connections, and rejects without Redis', async () => {
    const opened = await open();
    await opened.connection.call('ACL', 'SETUSER', 'default', '-client|list');
    onTestFinished(async () => {
      const admin = openRedis(redis().url, { log: silentLogger() });
      await admin.commands.call('ACL', 'SETUSER', 'default', '+@all');
      await admin.close();
    });
    expect(await opened.condition.obstacle()).toBeUndefined();
  });
});
