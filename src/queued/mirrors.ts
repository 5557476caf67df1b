import { createFeed, drainEvents, endedFeed, type Feed } from '../engine/events.ts';
import type { Redis } from '../redis.ts';
import type { Logger } from '../telemetry.ts';
import type { Caller, JobEvent } from '../wire/jobs.ts';
import { IS_TERMINAL } from '../wire/v2.ts';
import type { Bus } from './bus.ts';
import {
  type Place,
  type Told,
  decodeEvent,
  decodePlace,
  decodePreview,
  decodeTold,
  isAfter,
} from './codec.ts';
import type { Keys } from './keys.ts';
import type { Runs } from './runs.ts';

/** How long a submission waits for whoever submitted to listen. */
const UNHEARD_MS = 30_000;
/** In case an event was missed although nothing seemed to be wrong. */
const LOOK_MS = 15_000;

/** What other processes tell of their jobs, as feeds of this one. */
export type Mirrors = {
  /** Keeps everything from now on for the first who listens: called before the job can start. */
  prepare(user: string, id: string): Promise<void>;
  /** What was kept for the first who listens. */
  prepared(caller: Caller, id: string, signal: AbortSignal): AsyncIterable<JobEvent> | undefined;
  /** Listens; first the latest status, progress and preview. */
  listen(id: string, signal: AbortSignal): Promise<AsyncIterable<JobEvent>>;
  close(): void;
};

export type MirrorDeps = {
  readonly redis: Redis;
  readonly keys: Keys;
  readonly bus: Bus;
  readonly runs: Pick<Runs, 'places' | 'read'>;
  readonly log: Logger;
};

type Mirror = {
  readonly feed: Feed;
  readonly ready: Promise<void>;
  /** Reads what the stream has beyond what is known. */
  readonly catchUp: () => Promise<void>;
  readonly isWaiting: () => boolean;
  readonly place: (position: number | null) => void;
  readonly isOver: () => boolean;
  listeners: number;
  close(): void;
};

type Prepared = {
  readonly user: string;
  readonly events: AsyncIterable<JobEvent>;
  take(signal: AbortSignal): void;
};

const BEFORE_ALL: Place = { fence: 0, n: 0 };

export function createMirrors(deps: MirrorDeps): Mirrors {
  const { bus, log } = deps;
  const mirrors = new Map<string, Mirror>();
  const prepared = new Map<string, Prepared>();
  const trouble = (error: unknown): void => log.warn({ err: error }, 'events could not be read');
  const lookAll = (): void => {
    for (const mirror of mirrors.values()) void mirror.catchUp().catch(trouble);
  };
  const timer = setInterval(lookAll, LOOK_MS).unref();
  const placeAll = once(async () => {
    const waiting = [...mirrors].filter(([, mirror]) => mirror.isWaiting());
    const places = await deps.runs.places(waiting.map(([id]) => id));
    for (const [i, [, mirror]] of waiting.entries()) mirror.place(places[i] ?? null);
  });
  bus.onGap(lookAll);
  const onBus = bus.listen(deps.keys.bus, (message) => {
    if (message.toString() === 'moved') placeAll().catch(trouble);
  });
  onBus.catch(trouble);

  function mirrorOf(id: string): Mirror {
    const known = mirrors.get(id);
    if (known) return known;
    const mirror = createMirror(deps, id, () => {
      if (mirrors.get(id) === mirror) mirrors.delete(id);
    });
    mirrors.set(id, mirror);
    mirror.ready.catch(() => mirror.close());
    return mirror;
  }

  async function* heard(
    mirror: Mirror,
    events: AsyncIterable<JobEvent>,
    onEnd = (): void => {},
  ): AsyncGenerator<JobEvent> {
    try {
      yield* events;
    } finally {
      onEnd();
      if (--mirror.listeners === 0) mirror.close();
    }
  }

  return {
    async prepare(user, id) {
      const mirror = mirrorOf(id);
      mirror.listeners++;
      await mirror.ready;
      const stop = new AbortController();
      const abort = (): void => stop.abort();
      let leave = (): void => {};
      const events = heard(mirror, mirror.feed.listen(stop.signal), () => leave());
      const expiry = setTimeout(() => {
        prepared.delete(id);
        stop.abort();
        void drainEvents(events);
      }, UNHEARD_MS).unref();
      prepared.set(id, {
        user,
        events,
        take(signal) {
          clearTimeout(expiry);
          if (signal.aborted) abort();
          signal.addEventListener('abort', abort);
          leave = () => signal.removeEventListener('abort', abort);
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
    async listen(id, signal) {
      const mirror = mirrorOf(id);
      mirror.listeners++;
      await mirror.ready;
      const { feed } = mirror;
      return heard(mirror, mirror.isOver() ? endedFeed(feed.status()) : feed.listen(signal));
    },
    close() {
      clearInterval(timer);
      for (const mirror of mirrors.values()) mirror.close();
    },
  };
}

function createMirror(deps: MirrorDeps, id: string, onClose: () => void): Mirror {
  const { redis, keys, bus, runs } = deps;
  const feed = createFeed({ status: 'queued' });
  let last = BEFORE_ALL;
  let position: number | null = null;
  let isOver = false;
  let isClosed = false;
  let leave = (): void => {};

  function apply(place: Place, event: JobEvent): void {
    if (isOver || !isAfter(place, last)) return;
    last = place;
    feed.emit(event);
    if (event.event !== 'status' || !IS_TERMINAL[event.data.status]) return;
    isOver = true;
    feed.end();
    close();
  }

  const catchUp = once(async () => {
    const entries = await redis.xrange(keys.events(id), `(${last.fence}-${last.n}`, '+');
    for (const [at, [, text = '']] of entries) apply(decodePlace(at), decodeEvent(text));
  });

  function hear(told: Told): void {
    if (told.kind === 'preview') {
      if (!isOver) feed.emit(told.event);
      return;
    }
    const { fence, n } = told.place;
    if (fence === last.fence && n === last.n + 1) return apply(told.place, told.event);
    if (isAfter(told.place, last)) void catchUp().catch(() => {});
  }

  const isWaiting = (): boolean => feed.status().status === 'queued';

  function place(now: number | null): void {
    if (now === null || now === position || !isWaiting()) return;
    position = now;
    feed.emit({ event: 'status', data: { status: 'queued', queue_position: now } });
  }

  /** A job that was taken has not always told so yet. */
  async function compare(): Promise<void> {
    const [run] = await runs.read([id]);
    if (!run?.status || IS_TERMINAL[run.status] || isOver) return;
    position = run.position;
    if (run.status === feed.status().status && position === null) return;
    feed.emit({ event: 'status', data: { status: run.status, queue_position: position } });
  }

  async function open(): Promise<void> {
    leave = await bus.listen(keys.channel(id), (message) => hear(decodeTold(message)));
    await catchUp();
    if (isClosed || isOver) return leave();
    const preview = await redis.getBuffer(keys.preview(id));
    if (preview) feed.emit(decodePreview(preview));
    await compare();
  }

  function close(): void {
    if (isClosed) return;
    isClosed = true;
    feed.end();
    leave();
    onClose();
  }

  return {
    feed,
    ready: open(),
    catchUp,
    isWaiting,
    place,
    isOver: () => isOver,
    listeners: 0,
    close,
  };
}

/** Never twice at once; a call meanwhile has it done once more. */
function once(task: () => Promise<void>): () => Promise<void> {
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
