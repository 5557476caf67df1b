import { createJobFeed, drainEvents, endedJobEvents, type JobFeed } from '../job-feed.ts';
import type { Redis } from '../../lib/redis.ts';
import type { Logger } from '../../observability/log.ts';
import type { Caller, JobEvent } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { PubSub } from './pubsub.ts';
import {
  type StreamPosition,
  type PublishedEvent,
  decodeEvent,
  decodePosition,
  decodePreview,
  decodePublished,
  isAfter,
} from './event-codec.ts';
import type { QueueKeys } from './redis-keys.ts';
import type { RunStateStore } from './run-state.ts';

/** How long the events of a new job are buffered for its submitter. */
const UNREAD_MS = 30_000;
/** Interval at which streams are read, in case a message was lost unnoticed. */
const CATCH_UP_MS = 15_000;

/** The events of jobs that other processes run, as feeds of this process. */
export type EventMirrors = {
  /** Buffers all events from now on for the first subscriber. Call before the job can start. */
  prepare(user: string, id: string): Promise<void>;
  /** The buffered events, for the first subscriber. */
  prepared(caller: Caller, id: string, signal: AbortSignal): AsyncIterable<JobEvent> | undefined;
  /** Subscribes; the first events are the latest status, progress and preview. */
  subscribe(id: string, signal: AbortSignal): Promise<AsyncIterable<JobEvent>>;
  close(): void;
};

export type EventMirrorOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly pubsub: PubSub;
  readonly runState: Pick<RunStateStore, 'places' | 'read'>;
  readonly log: Logger;
};

type EventMirror = {
  readonly feed: JobFeed;
  readonly ready: Promise<void>;
  /** Reads the events of the stream after the last known position. */
  readonly catchUp: () => Promise<void>;
  readonly isWaiting: () => boolean;
  readonly place: (position: number | null) => void;
  readonly isOver: () => boolean;
  subscriberCount: number;
  close(): void;
};

type BufferedEvents = {
  readonly user: string;
  readonly events: AsyncIterable<JobEvent>;
  take(signal: AbortSignal): void;
};

const STREAM_START: StreamPosition = { fence: 0, n: 0 };

export function createEventMirrors(deps: EventMirrorOptions): EventMirrors {
  const { pubsub, log } = deps;
  const eventMirrors = new Map<string, EventMirror>();
  const prepared = new Map<string, BufferedEvents>();
  const logFailure = (error: unknown): void =>
    log.warn({ event: 'job_events.read_failed', err: error }, 'could not read events of jobs');
  const catchUpAll = (): void => {
    for (const eventMirror of eventMirrors.values()) void eventMirror.catchUp().catch(logFailure);
  };
  const timer = setInterval(catchUpAll, CATCH_UP_MS).unref();
  const updatePositions = coalesce(async () => {
    const waiting = [...eventMirrors].filter(([, eventMirror]) => eventMirror.isWaiting());
    const places = await deps.runState.places(waiting.map(([id]) => id));
    for (const [i, [, eventMirror]] of waiting.entries()) eventMirror.place(places[i] ?? null);
  });
  pubsub.onReconnect(catchUpAll);
  const subscribed = pubsub.subscribe(deps.keys.pubsub, (message) => {
    if (message.toString() === 'moved') updatePositions().catch(logFailure);
  });
  subscribed.catch(logFailure);

  function openMirror(id: string): EventMirror {
    const known = eventMirrors.get(id);
    if (known) return known;
    const eventMirror = createEventMirror(deps, id, () => {
      if (eventMirrors.get(id) === eventMirror) eventMirrors.delete(id);
    });
    eventMirrors.set(id, eventMirror);
    eventMirror.ready.catch(() => eventMirror.close());
    return eventMirror;
  }

  async function* countListener(
    eventMirror: EventMirror,
    events: AsyncIterable<JobEvent>,
    onEnd = (): void => {},
  ): AsyncGenerator<JobEvent> {
    try {
      yield* events;
    } finally {
      onEnd();
      if (--eventMirror.subscriberCount === 0) eventMirror.close();
    }
  }

  return {
    async prepare(user, id) {
      const eventMirror = openMirror(id);
      eventMirror.subscriberCount++;
      await eventMirror.ready;
      const stop = new AbortController();
      const abort = (): void => stop.abort();
      let unsubscribe = (): void => {};
      const events = countListener(eventMirror, eventMirror.feed.subscribe(stop.signal), () =>
        unsubscribe(),
      );
      const expiry = setTimeout(() => {
        prepared.delete(id);
        stop.abort();
        void drainEvents(events);
      }, UNREAD_MS).unref();
      prepared.set(id, {
        user,
        events,
        take(signal) {
          clearTimeout(expiry);
          if (signal.aborted) abort();
          signal.addEventListener('abort', abort);
          unsubscribe = () => signal.removeEventListener('abort', abort);
        },
      });
    },
    prepared(caller, id, signal) {
      const first = prepared.get(id);
      if (first?.user !== caller.user) return undefined;
      prepared.delete(id);
      first.take(signal);
      return first.events;
    },
    async subscribe(id, signal) {
      const eventMirror = openMirror(id);
      eventMirror.subscriberCount++;
      await eventMirror.ready;
      const { feed } = eventMirror;
      return countListener(
        eventMirror,
        eventMirror.isOver() ? endedJobEvents(feed.status()) : feed.subscribe(signal),
      );
    },
    close() {
      clearInterval(timer);
      for (const eventMirror of eventMirrors.values()) eventMirror.close();
    },
  };
}

function createEventMirror(deps: EventMirrorOptions, id: string, onClose: () => void): EventMirror {
  const { redis, keys, pubsub, runState } = deps;
  const feed = createJobFeed({ status: 'queued' });
  let last = STREAM_START;
  let position: number | null = null;
  let isOver = false;
  let isClosed = false;
  let unsubscribe = (): void => {};

  function apply(place: StreamPosition, event: JobEvent): void {
    if (isOver || !isAfter(place, last)) return;
    last = place;
    feed.emit(event);
    if (event.event !== 'status' || !IS_TERMINAL[event.data.status]) return;
    isOver = true;
    feed.end();
    close();
  }

  const catchUp = coalesce(async () => {
    const entries = await redis.xrange(keys.eventStream(id), `(${last.fence}-${last.n}`, '+');
    for (const [at, [, text = '']] of entries) apply(decodePosition(at), decodeEvent(text));
  });

  function onPublished(published: PublishedEvent): void {
    if (published.kind === 'preview') {
      if (!isOver) feed.emit(published.event);
      return;
    }
    const { fence, n } = published.position;
    if (fence === last.fence && n === last.n + 1) return apply(published.position, published.event);
    if (isAfter(published.position, last)) void catchUp().catch(() => {});
  }

  const isWaiting = (): boolean => feed.status().status === 'queued';

  function place(now: number | null): void {
    if (now === null || now === position || !isWaiting()) return;
    position = now;
    feed.emit({ event: 'status', data: { status: 'queued', queue_position: now } });
  }

  /** A worker may have taken the job without having published it yet. */
  async function compareStatus(): Promise<void> {
    const [run] = await runState.read([id]);
    if (!run?.status || IS_TERMINAL[run.status] || isOver) return;
    position = run.position;
    if (run.status === feed.status().status && position === null) return;
    feed.emit({ event: 'status', data: { status: run.status, queue_position: position } });
  }

  async function open(): Promise<void> {
    unsubscribe = await pubsub.subscribe(keys.eventChannel(id), (message) =>
      onPublished(decodePublished(message)),
    );
    await catchUp();
    if (isClosed || isOver) return unsubscribe();
    const preview = await redis.getBuffer(keys.preview(id));
    if (preview) feed.emit(decodePreview(preview));
    await compareStatus();
  }

  function close(): void {
    if (isClosed) return;
    isClosed = true;
    feed.end();
    unsubscribe();
    onClose();
  }

  return {
    feed,
    ready: open(),
    catchUp,
    isWaiting,
    place,
    isOver: () => isOver,
    subscriberCount: 0,
    close,
  };
}

/** Runs never overlap; a call during a run causes one more run. */
function coalesce(task: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let again = false;
  const run = async (): Promise<void> => {
    do {
      again = false;
      await task();
    } while (again);
  };
  return () => {
    again = true;
    return (running ??= run().finally(() => (running = undefined)));
  };
}
