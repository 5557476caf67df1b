import { coalesce } from '../../lib/coalesce.ts';
import type { Logger } from '../../observability/log.ts';
import type { Caller, JobEvent } from '../../protocol/job-api.ts';
import { drainEvents, endedJobEvents } from '../job-feed.ts';
import { EventMirror, type EventMirrorSources } from './event-mirror.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';

/** How long the events of a new job are buffered for its submitter. */
const BUFFER_MS = 30_000;
/** Interval at which streams are read, in case a message was lost unnoticed. */
const CATCH_UP_MS = 15_000;

export type EventMirrorsOptions = EventMirrorSources & {
  readonly runState: Pick<RunStateStore, 'positions' | 'read'>;
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
    const { pubsub, keys } = options;
    pubsub.onReconnect(() => this.#catchUpAll());
    const subscribed = pubsub.subscribe(keys.queueChannel, (message) => {
      if (message.toString() === 'moved') this.#updatePositions().catch(this.#logFailure);
    });
    subscribed.catch(this.#logFailure);
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
    const positions = await this.#options.runState.positions(waiting.map(([id]) => id));
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
