// How long a light user waits beside a heavy one, and what a job costs in Redis: priorities by a user's own
// backlog, as they are, against turns between a few queues. After `npx tsc -p test/bench`: `node bench-output/build/test/bench/fair-queues.js`.
import { Queue, Worker } from 'bullmq';
import { openRedis } from '../../src/redis/redis.ts';
import { silentLogger } from '../../src/observability/log.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { BullJobQueue } from '../../src/upstreams/distributed/bull-job-queue.ts';
import { createQueueKeys, QUEUE_NAME } from '../../src/upstreams/distributed-state/redis-keys.ts';
import { createRunStates } from '../../src/upstreams/distributed-state/run-state.ts';
import { startRedis } from '../support/processes/redis.ts';

const HEAVY_BACKLOGS = [20, 200];
const LIGHT_USERS = 16;
const QUEUES = 8;

const server = await startRedis();
const log = silentLogger();
const links = openRedis(server.url, { log });
const redis = links.commands;

type Scheme = {
  add(id: string, user: string): Promise<void>;
  /** Takes the next job and ends it. */
  next(): Promise<string | undefined>;
  close(): Promise<void>;
};

async function priorities(): Promise<Scheme> {
  const keys = createQueueKeys(links);
  const takeover = { lockMs: 6000, checkMs: 1000 };
  const pubsub = links.subscriber();
  const shared = { redis, keys, worker: 'one', pubsub, clock: systemClock, log };
  const queue = new BullJobQueue({ ...shared, takeover });
  const runs = createRunStates(redis, keys, 'one');
  const worker = new Worker(QUEUE_NAME, undefined, { connection: redis, prefix: keys.bullPrefix });
  return {
    add: (id, user) => queue.add([{ id, user, order: 0 }]),
    async next() {
      const job = await worker.getNextJob('t', { block: false });
      if (job?.id === undefined) return undefined;
      const { fence } = (await runs.claim(job.id, 0)) as { readonly fence: number };
      await runs.end({ id: job.id, fence }, { status: 'succeeded' });
      await job.moveToCompleted(undefined, 't', false);
      return job.id;
    },
    close: async () => void (await Promise.all([worker.close(), queue.close()])),
  };
}

async function turns(): Promise<Scheme> {
  const keys = createQueueKeys(links);
  const runs = createRunStates(redis, keys, 'one');
  const prefix = `${links.prefix}turns`;
  const base = { connection: redis, prefix };
  const names = Array.from({ length: QUEUES }, (_, i) => `q${i}`);
  const defaultJobOptions = { removeOnComplete: true };
  const queues = names.map((name) => new Queue(name, { ...base, defaultJobOptions }));
  const workers = names.map((name) => new Worker(name, undefined, base));
  let turn = 0;
  return {
    async add(id, user) {
      const sum = Buffer.from(user).reduce((total, byte) => total * 31 + byte, 0);
      await queues[sum % QUEUES]?.add('job', { user }, { jobId: id });
    },
    async next() {
      for (let tries = 0; tries < QUEUES; tries++) {
        const job = await workers[turn++ % QUEUES]?.getNextJob('t', { block: false });
        if (job?.id === undefined) continue;
        const { fence } = (await runs.claim(job.id, 0)) as { readonly fence: number };
        await runs.end({ id: job.id, fence }, { status: 'succeeded' });
        await job.moveToCompleted(undefined, 't', false);
        return job.id;
      }
      return undefined;
    },
    close: async () => void (await Promise.all([...workers, ...queues].map((one) => one.close()))),
  };
}

async function commandsSoFar(): Promise<number> {
  const stats = await redis.info('commandstats');
  return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

async function measure(name: string, open: () => Promise<Scheme>, heavyJobs: number) {
  await redis.flushall();
  const scheme = await open();
  const before = await commandsSoFar();
  const startedAtMs = performance.now();
  for (let i = 0; i < heavyJobs; i++) await scheme.add(`h${i}`, 'heavy');
  for (let i = 0; i < LIGHT_USERS; i++) await scheme.add(`l${i}`, `light${i}`);
  const order: string[] = [];
  for (let id = await scheme.next(); id !== undefined; id = await scheme.next()) order.push(id);
  const ms = ((performance.now() - startedAtMs) / order.length).toFixed(1);
  const commands = Math.round(((await commandsSoFar()) - before) / order.length);
  const waits = order.flatMap((id, at) => (id.startsWith('l') ? [at] : []));
  const sorted = waits.toSorted((a, b) => a - b);
  const [median, most] = [sorted[Math.floor(sorted.length / 2)], sorted.at(-1)];
  console.log(
    `${name}, ${heavyJobs} jobs of a heavy user: a light user waits for ${median} jobs (median), ` +
      `${most} at most; ${commands} commands in Redis and ${ms} ms for each job`,
  );
  await scheme.close();
}

for (const heavyJobs of HEAVY_BACKLOGS) {
  await measure('priorities', priorities, heavyJobs);
  await measure('turns', turns, heavyJobs);
}
await links.close();
await server.dispose();
