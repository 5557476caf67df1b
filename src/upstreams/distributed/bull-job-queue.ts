import { Queue, QueueEvents, type QueueEventsListener } from 'bullmq';
import { reached } from '../../lib/crash-point.ts';
import type { Redis } from '../../lib/redis.ts';
import type {
  JobQueue,
  JobQueueWorker,
  JobQueueWorkerOptions,
  QueuedJob,
} from '../jobs/job-queue.ts';
import { QUEUE_NAME } from '../distributed-state/redis-keys.ts';
import { type QueueScripts, defineQueueScripts } from '../distributed-state/run-scripts.ts';
import { type BullOptions, BullWorker } from './bull-worker.ts';

/** Length of the event log: far more than a process can be behind. */
const MAX_LOGGED_EVENTS = 5000;
/** A read without events returns before a silent connection is taken for a dead one. */
const READ_EVENTS_MS = 5000;
const RETRY_MS = 1000;
/** A run that failed for an internal reason is repeated as often; the worker says how soon. */
const MAX_RUNS = 100;

export type BullJobQueueOptions = BullOptions & {
  /** A connection of its own, for reading events. */
  readonly eventsRedis: Redis;
};

/** The queue that several processes share: jobs of BullMQ with the ids of ours. */
export class BullJobQueue implements JobQueue {
  readonly #options: BullJobQueueOptions;
  readonly #scripts: QueueScripts;
  readonly #queue: Queue;
  readonly #listening: Promise<QueueEvents | undefined>;
  readonly #workers: BullWorker[] = [];
  readonly #onMove: (() => void)[] = [];
  #isClosed = false;

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
    this.#listening = this.#listen();
  }

  async add(jobs: readonly QueuedJob[]): Promise<void> {
    const entered = await Promise.all(jobs.map((job) => this.#enter(job)));
    const added = entered.flatMap((job) => (job.opts.priority > 0 ? [job] : []));
    if (added.length === 0) return;
    reached('after-queue-entry');
    await this.#queue.addBulk(added);
    await Promise.all(
      [...new Set(jobs.map(({ user }) => user))].map((user) => this.#arrange(user)),
    );
  }

  /** BullMQ does not remove a job that a live worker has. */
  async remove(id: string): Promise<boolean> {
    return (await this.#queue.remove(id)) === 1;
  }

  async cancel(id: string): Promise<boolean> {
    return (await this.#scripts.cancel(id)) === 1;
  }

  async positions(ids: readonly string[]): Promise<readonly (number | null)[]> {
    const { redis, keys } = this.#options;
    const [only, ...others] = ids;
    if (only === undefined) return [];
    if (others.length === 0) return [await redis.zrank(keys.waiting, only)];
    const waiting = await redis.zrange(keys.waiting, 0, '-1');
    const places = new Map(waiting.map((id, place) => [id, place]));
    return ids.map((id) => places.get(id) ?? null);
  }

  waiting(): Promise<number> {
    return this.#queue.getJobCountByTypes('wait', 'prioritized', 'delayed');
  }

  async waitingOf(user: string): Promise<number> {
    return Number(await this.#scripts.waitingOf(user));
  }

  async nextOrder(): Promise<number> {
    const highest = await this.#options.redis.get(this.#options.keys.highestOrder);
    return highest === null ? 0 : Math.floor(Number(highest)) + 1;
  }

  onMove(changed: () => void): void {
    this.#onMove.push(changed);
  }

  worker(options: JobQueueWorkerOptions): JobQueueWorker {
    const worker = new BullWorker({
      ...this.#options,
      ...options,
      onReturned: (user) => this.#arrange(user),
    });
    this.#workers.push(worker);
    return {
      start: () => void this.#listening.then(() => worker.start()),
      close: () => worker.close(),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const events = await this.#listening;
    await Promise.all([events?.close(), this.#queue.close()]);
  }

  async #enter({ id, user, order }: QueuedJob) {
    const priority = Number(await this.#scripts.enter(id, user, order));
    return { name: 'job', data: { user }, opts: { jobId: id, priority } };
  }

  async #arrange(user: string): Promise<void> {
    await this.#scripts.arrange(user);
  }

  /** Reads on from the last event there is: `$` would lose events between two reads. */
  async #listen(): Promise<QueueEvents | undefined> {
    const { redis, eventsRedis, keys } = this.#options;
    const [last] = await redis.xrevrange(keys.queueEvents, '+', '-', 'COUNT', 1);
    if (this.#isClosed) return undefined;
    const events = new QueueEvents(QUEUE_NAME, {
      connection: eventsRedis,
      prefix: keys.bullPrefix,
      autorun: false,
      lastEventId: last?.[0] ?? '0-0',
      blockingTimeout: READ_EVENTS_MS,
    });
    events.on('error', this.#logError);
    for (const name of ['waiting', 'active', 'removed', 'moved'] as const) {
      events.on<Events, typeof name>(name, () => this.#onMove.forEach((changed) => changed()));
    }
    events.on<Events, 'cancel'>('cancel', ({ jobId }) => {
      for (const worker of this.#workers) worker.cancel(jobId);
    });
    void this.#readUntilClosed(events);
    return events;
  }

  async #readUntilClosed(events: QueueEvents): Promise<void> {
    while (!this.#isClosed) {
      await events.run().catch(this.#logError);
      if (!this.#isClosed) await this.#options.clock.sleep(RETRY_MS);
    }
  }

  readonly #logError = (error: unknown): void =>
    this.#options.log.debug({ event: 'queue.error', err: error }, 'BullMQ reports an error');
}

/** Events of ours in BullMQ's stream, beside its own. */
type Events = QueueEventsListener & {
  cancel: (event: { readonly jobId: string }, id: string) => void;
  moved: (event: object, id: string) => void;
};
