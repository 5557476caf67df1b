import type { Redis } from '../../redis/redis.ts';
import type { RedisSubscriber } from '../../redis/redis-subscriber.ts';
import type { JobQueue } from '../jobs/job-queue.ts';
import type { QueueKeys } from './redis-keys.ts';
import type { RunStates } from './run-state.ts';
import { LRUCache } from 'lru-cache';
import { coalesce } from '../../lib/concurrency.ts';
import type { Logger } from '../../observability/log.ts';
import type { Caller, JobEvent } from '../../protocol/job-api.ts';
import { JobFeed } from '../../job-events/job-feed.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import { decodeEvent, decodePublished, idOf, positionOf } from './run-codec.ts';

/** The submitter of a job gets all its events if it asks for them within this time. */
const SUBMITTER_MS = 30_000;
const MAX_SUBMITTED = 10_000;
/** The interval at which streams are read, in case a message was lost. */
const CATCH_UP_MS = 15_000;
/** The interval at which the queue positions of waiting jobs are read. */
const POSITIONS_MS = 500;

type EventMirrorsOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly pubsub: RedisSubscriber;
  readonly runState: RunStates;
  readonly queue: JobQueue;
  readonly log: Logger;
};

/** Makes feeds in this process of the events of jobs that other processes run. */
export class EventMirrors {
  readonly #options: EventMirrorsOptions;
  readonly #mirrors = new Set<EventMirror>();
  /** The submitter of each job that was just submitted here, by job id. */
  readonly #submitted = new LRUCache<string, string>({ max: MAX_SUBMITTED, ttl: SUBMITTER_MS });
  readonly #updatePositions = coalesce(() => this.#readPositions().catch(this.#logFailure));
  readonly #timers: readonly NodeJS.Timeout[];

  constructor(options: EventMirrorsOptions) {
    this.#options = options;
    this.#timers = [
      setInterval(() => this.#catchUpAll(), CATCH_UP_MS).unref(),
      setInterval(() => void this.#updatePositions(), POSITIONS_MS).unref(),
    ];
    options.pubsub.onReconnect(() => this.#catchUpAll());
  }

  /** Call when the user has submitted a job here: its first subscription then gets all events. */
  submitted(user: string, id: string): void {
    this.#submitted.set(id, user);
  }

  /** All events of a job for the user who has just submitted it here. `undefined` for other callers, and the second time. */
  ofSubmitter(
    caller: Caller,
    id: string,
    signal: AbortSignal,
  ): AsyncIterable<JobEvent> | undefined {
    if (this.#submitted.get(id) !== caller.user) return undefined;
    this.#submitted.delete(id);
    const mirror = this.#create(id);
    const events = mirror.feed.subscribe(signal);
    mirror.open().catch(this.#logFailure);
    return events;
  }

  /** Subscribes to a job. The first events are its latest status and progress. */
  async subscribe(id: string, signal: AbortSignal): Promise<AsyncIterable<JobEvent>> {
    const mirror = this.#create(id);
    await mirror.open();
    return mirror.feed.subscribe(signal);
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer);
    for (const mirror of this.#mirrors) mirror.close();
  }

  #create(id: string): EventMirror {
    const mirror = new EventMirror(id, this.#options, () => this.#mirrors.delete(mirror));
    this.#mirrors.add(mirror);
    return mirror;
  }

  #catchUpAll(): void {
    for (const mirror of this.#mirrors) mirror.readMissed().catch(this.#logFailure);
  }

  async #readPositions(): Promise<void> {
    const waiting = [...this.#mirrors].filter((mirror) => mirror.isWaiting());
    if (waiting.length === 0) return;
    const positions = await this.#options.queue.positions(waiting.map(({ id }) => id));
    for (const [i, mirror] of waiting.entries()) mirror.setQueuePosition(positions[i] ?? null);
  }

  readonly #logFailure = (error: unknown): void =>
    this.#options.log.warn(
      { event: 'job_events.read_failed', err: error },
      'could not read events of jobs',
    );
}

/** A feed in this process of the events of one job that another process runs. */
class EventMirror {
  readonly id: string;
  readonly feed = new JobFeed({ status: 'queued' }, () => this.close());
  readonly #options: EventMirrorsOptions;
  readonly #onClose: () => void;
  /** Reads and applies the events after the last known position. */
  readonly #catchUp = coalesce(() => this.#readStream());
  /** The position of the last applied event. */
  #last = 0;
  /** True when the job has ended, or when its events are no longer read. */
  #isClosed = false;

  constructor(id: string, options: EventMirrorsOptions, onClose: () => void) {
    this.id = id;
    this.#options = options;
    this.#onClose = onClose;
  }

  isWaiting(): boolean {
    return this.feed.status()?.status === 'queued';
  }

  setQueuePosition(position: number | null): void {
    const isKnown = position === this.feed.status()?.queue_position;
    if (position === null || isKnown || !this.isWaiting()) return;
    this.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.feed.end();
    const { pubsub, keys } = this.#options;
    pubsub.unsubscribe(keys.eventChannel(this.id), this.#onMessage);
    this.#onClose();
  }

  /** Resolves once the mirror is subscribed and has read the stream; a failure closes it. */
  async open(): Promise<void> {
    const { keys, pubsub } = this.#options;
    try {
      await pubsub.subscribe(keys.eventChannel(this.id), this.#onMessage);
      await this.#catchUp();
      if (!this.#isClosed) await this.#compareStatus();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Reads missed events. If the state of the run has expired, its end was missed: closes the feed, and its reader reads the job. */
  async readMissed(): Promise<void> {
    const { redis, keys } = this.#options;
    await this.#catchUp();
    if ((await redis.exists(keys.run(this.id))) === 0) this.close();
  }

  async #readStream(): Promise<void> {
    const { redis, keys } = this.#options;
    const entries = await redis.xrange(keys.eventStream(this.id), `(${idOf(this.#last)}`, '+');
    for (const [id, [, text = '']] of entries) this.#apply(positionOf(id), decodeEvent(text));
  }

  readonly #onMessage = (message: Buffer): void => {
    const { position, event } = decodePublished(message);
    if (position === undefined) this.feed.emit(event);
    else if (position === this.#last + 1) this.#apply(position, event);
    else if (position > this.#last) void this.#catchUp().catch(() => {});
  };

  #apply(position: number, event: JobEvent): void {
    if (this.#isClosed || position <= this.#last) return;
    this.#last = position;
    this.feed.emit(event);
    if (event.event === 'status' && IS_TERMINAL[event.data.status]) this.close();
  }

  /** Emits the status of the run, which may be newer than the last event: a worker may have claimed the job since. */
  async #compareStatus(): Promise<void> {
    const { runState, queue } = this.#options;
    const last = this.#last;
    const [[run], [position = null]] = await Promise.all([
      runState.read([this.id]),
      queue.positions([this.id]),
    ]);
    // An event that was applied meanwhile is newer than this status.
    if (!run?.status || IS_TERMINAL[run.status] || this.#isClosed || this.#last !== last) return;
    const { status } = run;
    if (status === this.feed.status()?.status && position === null) return;
    this.feed.emit({ event: 'status', data: { status, queue_position: position } });
  }
}
