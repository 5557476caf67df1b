import { Queue } from 'bullmq';
import type { Clock } from '../../lib/clock.ts';
import type { RedisConnections } from '../../redis/redis.ts';
import { QUEUE_NAME, QueueKeys } from './redis-keys.ts';

/** A reason why waiting jobs do not run. It is the same for all servers. */
export type QueueObstacle = 'paused' | 'no_worker' | 'stalled';

/** The queue is stalled when jobs wait for this long and none runs, although there are workers. */
const STALLED_AFTER_MS = 30_000;

/** The shared queue, as a process reads it that does not run its jobs. Calls reject when Redis does not answer. */
export class QueueCondition {
  readonly #queue: Queue;
  readonly #clock: Clock;
  #idleSinceMs: number | undefined;

  constructor(links: RedisConnections, clock: Clock) {
    const { bullPrefix: prefix } = new QueueKeys(links);
    const connection = links.commands;
    this.#queue = new Queue(QUEUE_NAME, { connection, prefix, skipMetasUpdate: true });
    // `openRedis` logs the errors of the connection.
    this.#queue.on('error', () => {});
    this.#clock = clock;
  }

  /** Why waiting jobs do not run; `undefined`: nothing prevents them. */
  async obstacle(): Promise<QueueObstacle | undefined> {
    const [isPaused, workers, counts] = await Promise.all([
      this.#queue.isPaused(),
      this.countWorkers(),
      this.#queue.getJobCounts('wait', 'prioritized', 'active'),
    ]);
    const waiting = (counts['wait'] ?? 0) + (counts['prioritized'] ?? 0);
    const isIdle = waiting > 0 && counts['active'] === 0;
    const nowMs = this.#clock.now();
    this.#idleSinceMs = isIdle ? (this.#idleSinceMs ?? nowMs) : undefined;
    if (isPaused) return 'paused';
    if (workers === 0) return 'no_worker';
    return nowMs - (this.#idleSinceMs ?? nowMs) >= STALLED_AFTER_MS ? 'stalled' : undefined;
  }

  /** True when BullMQ delays a job after a failed run. */
  async isDelayed(jobId: string): Promise<boolean> {
    return (await this.#queue.getJobState(jobId)) === 'delayed';
  }

  /** The number of workers; `undefined` when Redis does not let this user list connections. */
  async countWorkers(): Promise<number | undefined> {
    try {
      return await this.#queue.getWorkersCount();
    } catch (error) {
      if ((error as Error).name === 'ReplyError') return undefined;
      throw error;
    }
  }
}
