import { Queue } from 'bullmq';
import { completesWithin } from '../../lib/completes-within.ts';
import { reached } from '../../lib/crash-point.ts';
import { COMMAND_TIMEOUT_MS } from '../../redis/redis.ts';
import type {
  JobQueue,
  JobQueueWorker,
  JobQueueWorkerOptions,
  QueuedJob,
  WaitingJobs,
} from '../jobs/job-queue.ts';
import type { RedisSubscriber } from '../../redis/redis-subscriber.ts';
import { QUEUE_NAME } from './redis-keys.ts';
import { type QueueScripts, defineQueueScripts } from './queue-scripts.ts';
import { type BullOptions, BullWorker } from './bull-worker.ts';

/** BullMQ's events are not read, because each reader would get those of all jobs. */
const MAX_LOGGED_EVENTS = 0;
/** A run that fails for an internal reason is repeated up to this number; `BullWorker` sets the delays. */
const MAX_RUNS = 100;

export type BullJobQueueOptions = BullOptions & {
  readonly pubsub: Pick<RedisSubscriber, 'subscribe' | 'onReconnect'>;
  /** The name under which this process claims jobs. */
  readonly worker: string;
  /** The time limit of calls that a submission waits for. */
  readonly timeoutMs?: number;
};

/** The queue that several processes share. Each of its jobs is a BullMQ job with the same id. */
export class BullJobQueue implements JobQueue {
  readonly #options: BullJobQueueOptions;
  readonly #scripts: QueueScripts;
  readonly #queue: Queue;

  constructor(options: BullJobQueueOptions) {
    const { redis, keys } = options;
    this.#options = options;
    this.#scripts = defineQueueScripts(redis, keys);
    this.#queue = new Queue(QUEUE_NAME, {
      connection: redis,
      prefix: keys.bullPrefix,
      streams: { events: { maxLen: MAX_LOGGED_EVENTS } },
      defaultJobOptions: {
        removeOnComplete: true,
        removeOnFail: true,
        attempts: MAX_RUNS,
        backoff: { type: 'custom' },
      },
    });
    this.#queue.on('error', this.#logError);
  }

  async add(jobs: readonly QueuedJob[]): Promise<void> {
    const entered = await Promise.all(jobs.map((job) => this.#enter(job)));
    const added = entered.filter(({ opts }) => opts.priority > 0);
    if (added.length === 0) return;
    reached('after-queue-entry');
    await Promise.all(added.map(({ name, data, opts }) => this.#queue.add(name, data, opts)));
    const users = new Set(jobs.map(({ user }) => user));
    await Promise.all([...users].map((user) => this.#scripts.arrange<void>(user)));
  }

  /** False when a live worker has the job: then BullMQ does not remove it. */
  async remove(id: string): Promise<boolean> {
    return (await this.#queue.remove(id)) === 1;
  }

  async cancel(id: string): Promise<boolean> {
    return (await this.#scripts.cancel<number>(id)) === 1;
  }

  async positions(ids: readonly string[]): Promise<readonly (number | null)[]> {
    const { redis, keys } = this.#options;
    const [only, ...others] = ids;
    if (only === undefined) return [];
    if (others.length === 0) return [await redis.zrank(keys.waiting, only)];
    // One command, since each process reads the positions of all its waiting jobs twice a second.
    const waiting = await redis.zrange(keys.waiting, 0, '-1');
    const positions = new Map(waiting.map((id, position) => [id, position]));
    return ids.map((id) => positions.get(id) ?? null);
  }

  async waiting(user: string): Promise<WaitingJobs> {
    const counts = Promise.all([
      this.#queue.getJobCountByTypes('wait', 'prioritized', 'delayed'),
      this.#scripts.waitingOf<number>(user),
    ]);
    const [all, own] = await this.#withTimeout(counts);
    return { all, own };
  }

  async nextOrder(): Promise<number> {
    const { redis, keys } = this.#options;
    const highest = await this.#withTimeout(redis.get(keys.highestOrder));
    return highest === null ? 0 : Math.floor(Number(highest)) + 1;
  }

  worker(options: JobQueueWorkerOptions): JobQueueWorker {
    const worker = new BullWorker(options, {
      ...this.#options,
      onReturned: (user) => this.#scripts.arrange(user),
    });
    const { pubsub, keys } = this.#options;
    const onCancel = (id: Buffer): void => worker.stop(id.toString(), 'canceled');
    // After an error `pubsub` subscribes again by itself.
    const listening = pubsub
      .subscribe(keys.cancelChannel(this.#options.worker), onCancel)
      .catch(this.#logError);
    pubsub.onReconnect(() => void this.#cancelMissed(worker).catch(this.#logError));
    return {
      start: () => void listening.then(() => worker.start()),
      close: () => worker.close(),
    };
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #enter({ id, user, order }: QueuedJob) {
    const priority = await this.#scripts.enter<number>(id, user, order);
    return { name: 'job', data: { user }, opts: { jobId: id, priority } };
  }

  /** Rejects after the time limit. The submission is not recorded yet, so its caller need not wait for Redis. */
  async #withTimeout<T>(reply: Promise<T>): Promise<T> {
    const { timeoutMs = COMMAND_TIMEOUT_MS } = this.#options;
    if (await completesWithin(timeoutMs, reply)) return await reply;
    throw new Error('Command timed out');
  }

  /** Stops the running jobs whose cancel message was missed. */
  async #cancelMissed(worker: BullWorker): Promise<void> {
    const { redis, keys } = this.#options;
    for (const id of worker.running()) {
      if ((await redis.hexists(keys.run(id), 'cancel')) === 1) worker.stop(id, 'canceled');
    }
  }

  readonly #logError = (error: unknown): void =>
    this.#options.log.debug({ event: 'queue.error', err: error }, 'BullMQ reports an error');
}
