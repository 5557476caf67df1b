import type { SharedServices } from './shared-services.ts';
import { coalesce } from '../../lib/coalesce.ts';
import type { Logger } from '../../observability/log.ts';
import type { JobQueue } from '../jobs/job-queue.ts';
import type { Caller, JobEvent } from '../../protocol/job-api.ts';
import { drainEvents, endedJobEvents, createJobFeed, type JobFeed } from '../job-feed.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import {
  type PublishedEvent,
  type StreamPosition,
  decodeEvent,
  decodePosition,
  decodePreview,
  decodePublished,
  isAfter,
} from '../distributed-state/event-codec.ts';

/** How long the events of a new job are buffered for its submitter. */
const BUFFER_MS = 30_000;
/** Interval at which streams are read, in case a message was lost unnoticed. */
const CATCH_UP_MS = 15_000;

export type EventMirrorsOptions = EventMirrorSources & {
  readonly log: Logger;
};

type BufferedEvents = {
  readonly user: string;
  readonly events: AsyncIterable<JobEvent>;
  take(signal: AbortSignal): void;
};

/** The events of jobs that other processes run, as feeds of this process. */
export class EventMirrors {
  readonly #options: EventMirrorsOptions;
  readonly #mirrors = new Map<string, EventMirror>();
  readonly #buffered = new Map<string, BufferedEvents>();
  readonly #updatePositions = coalesce(() => this.#readPositions());
  readonly #timer: NodeJS.Timeout;

  constructor(options: EventMirrorsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#catchUpAll(), CATCH_UP_MS).unref();
    options.pubsub.onReconnect(() => this.#catchUpAll());
    options.queue.onMove(() => void this.#updatePositions().catch(this.#logFailure));
  }

  /** Buffers all events from now on for the first subscriber. Call before the job can start. */
  async prepare(user: string, id: string): Promise<void> {
    const mirror = await this.#open(id);
    const stop = new AbortController();
    const abort = (): void => stop.abort();
    let release = (): void => {};
    const events = subscription(mirror, mirror.feed.subscribe(stop.signal), () => release());
    const expiry = setTimeout(() => {
      this.#buffered.delete(id);
      abort();
      void drainEvents(events);
    }, BUFFER_MS).unref();
    this.#buffered.set(id, {
      user,
      events,
      take(signal) {
        clearTimeout(expiry);
        if (signal.aborted) abort();
        signal.addEventListener('abort', abort);
        release = () => signal.removeEventListener('abort', abort);
      },
    });
  }

  /** The buffered events, for the first subscriber. */
  prepared(caller: Caller, id: string, signal: AbortSignal): AsyncIterable<JobEvent> | undefined {
    const buffered = this.#buffered.get(id);
    if (buffered?.user !== caller.user) return undefined;
    this.#buffered.delete(id);
    buffered.take(signal);
    return buffered.events;
  }

  /** Subscribes; the first events are the latest status, progress and preview. */
  async subscribe(id: string, signal: AbortSignal): Promise<AsyncIterable<JobEvent>> {
    const mirror = await this.#open(id);
    const { feed } = mirror;
    const events = mirror.isOver() ? endedJobEvents(feed.status()) : feed.subscribe(signal);
    return subscription(mirror, events, () => {});
  }

  close(): void {
    clearInterval(this.#timer);
    for (const mirror of this.#mirrors.values()) mirror.close();
  }

  /** The mirror of a job, with one more subscriber. */
  async #open(id: string): Promise<EventMirror> {
    const mirror = this.#mirrors.get(id) ?? this.#create(id);
    mirror.addSubscriber();
    await mirror.ready;
    return mirror;
  }

  #create(id: string): EventMirror {
    const mirror = new EventMirror(id, this.#options, (closed) => {
      if (this.#mirrors.get(id) === closed) this.#mirrors.delete(id);
    });
    this.#mirrors.set(id, mirror);
    mirror.ready.catch(() => mirror.close());
    return mirror;
  }

  #catchUpAll(): void {
    for (const mirror of this.#mirrors.values()) void mirror.catchUp().catch(this.#logFailure);
  }

  async #readPositions(): Promise<void> {
    const waiting = [...this.#mirrors].filter(([, mirror]) => mirror.isWaiting());
    const positions = await this.#options.queue.positions(waiting.map(([id]) => id));
    for (const [i, [, mirror]] of waiting.entries()) mirror.setQueuePosition(positions[i] ?? null);
  }

  readonly #logFailure = (error: unknown): void =>
    this.#options.log.warn(
      { event: 'job_events.read_failed', err: error },
      'could not read events of jobs',
    );
}

/** Events of a subscriber of a mirror, which is released at their end. */
async function* subscription(
  mirror: EventMirror,
  events: AsyncIterable<JobEvent>,
  onEnd: () => void,
): AsyncGenerator<JobEvent> {
  try {
    yield* events;
  } finally {
    onEnd();
    mirror.releaseSubscriber();
  }
}

type EventMirrorSources = Pick<SharedServices, 'redis' | 'keys' | 'pubsub'> & {
  readonly runState: Pick<RunStateStore, 'read'>;
  readonly queue: Pick<JobQueue, 'positions' | 'onMove'>;
};

const STREAM_START: StreamPosition = { fence: 0, n: 0 };

/** The events of one job that another process runs, as a feed of this process. */
class EventMirror {
  readonly feed: JobFeed = createJobFeed({ status: 'queued' });
  /** Resolves once the mirror is subscribed and has read the stream. */
  readonly ready: Promise<void>;
  /** Reads the events of the stream after the last known position. */
  readonly catchUp = coalesce(() => this.#readStream());
  readonly #id: string;
  readonly #sources: EventMirrorSources;
  readonly #onClose: (mirror: EventMirror) => void;
  #last = STREAM_START;
  #queuePosition: number | null = null;
  #isOver = false;
  #isClosed = false;
  #subscribers = 0;
  #unsubscribe = (): void => {};

  constructor(id: string, sources: EventMirrorSources, onClose: (mirror: EventMirror) => void) {
    this.#id = id;
    this.#sources = sources;
    this.#onClose = onClose;
    this.ready = this.#open();
  }

  isOver(): boolean {
    return this.#isOver;
  }

  isWaiting(): boolean {
    return this.feed.status().status === 'queued';
  }

  /** Counts a subscriber; the mirror closes when the last one is released. */
  addSubscriber(): void {
    this.#subscribers++;
  }

  releaseSubscriber(): void {
    if (--this.#subscribers === 0) this.close();
  }

  setQueuePosition(position: number | null): void {
    if (position === null || position === this.#queuePosition || !this.isWaiting()) return;
    this.#queuePosition = position;
    this.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.feed.end();
    this.#unsubscribe();
    this.#onClose(this);
  }

  async #open(): Promise<void> {
    const { redis, keys, pubsub } = this.#sources;
    this.#unsubscribe = await pubsub.subscribe(keys.eventChannel(this.#id), (message) =>
      this.#receive(decodePublished(message)),
    );
    await this.catchUp();
    if (this.#isClosed || this.#isOver) return this.#unsubscribe();
    const preview = await redis.getBuffer(keys.preview(this.#id));
    if (preview) this.feed.emit(decodePreview(preview));
    await this.#compareStatus();
  }

  async #readStream(): Promise<void> {
    const { redis, keys } = this.#sources;
    const after = `(${this.#last.fence}-${this.#last.n}`;
    const entries = await redis.xrange(keys.eventStream(this.#id), after, '+');
    for (const [at, [, text = '']] of entries) this.#apply(decodePosition(at), decodeEvent(text));
  }

  #receive(published: PublishedEvent): void {
    if (published.kind === 'preview') {
      if (!this.#isOver) this.feed.emit(published.event);
      return;
    }
    const { position, event } = published;
    const isNext = position.fence === this.#last.fence && position.n === this.#last.n + 1;
    if (isNext) return this.#apply(position, event);
    if (isAfter(position, this.#last)) void this.catchUp().catch(() => {});
  }

  #apply(position: StreamPosition, event: JobEvent): void {
    if (this.#isOver || !isAfter(position, this.#last)) return;
    this.#last = position;
    this.feed.emit(event);
    if (event.event !== 'status' || !IS_TERMINAL[event.data.status]) return;
    this.#isOver = true;
    this.close();
  }

  /** A worker may have taken the job without having published it yet. */
  async #compareStatus(): Promise<void> {
    const { runState, queue } = this.#sources;
    const [[run], [position = null]] = await Promise.all([
      runState.read([this.#id]),
      queue.positions([this.#id]),
    ]);
    if (!run?.status || IS_TERMINAL[run.status] || this.#isOver) return;
    const { status } = run;
    this.#queuePosition = position;
    if (status === this.feed.status().status && position === null) return;
    this.feed.emit({ event: 'status', data: { status, queue_position: position } });
  }
}
