import { Semaphore as AsyncSemaphore } from 'async-mutex';

/**
 * Runs work when it may run, and settles as the work does. Waiting work runs in the order of its
 * arrival. `weight` is the part of the maximum that the work takes.
 */
export type Semaphore = <T>(work: () => Promise<T>, weight?: number) => Promise<T>;

/** Runs one piece of work at a time. */
export function createMutex(): Semaphore {
  return createSemaphore(1);
}

/** Runs work of at most `max` together, each piece of weight 1 unless it says otherwise. */
export function createSemaphore(max: number): Semaphore {
  const semaphore = new AsyncSemaphore(max);
  return (work, weight) => semaphore.runExclusive(work, weight);
}

/** Runs work for a user when it is that user's turn. */
export type FairSemaphore = <T>(user: string, work: () => Promise<T>) => Promise<T>;

/** Runs at most `max` pieces of work at a time. Users whose work waits take turns. */
export function createFairSemaphore(max: number): FairSemaphore {
  const withSlot = createSemaphore(max);
  /** The waiting work of each user. The first user is the next. */
  const waiting = new Map<string, (() => Promise<void>)[]>();
  const runNext = async (): Promise<void> => {
    for (const [user, works] of waiting) {
      waiting.delete(user);
      const work = works.shift();
      if (works.length > 0) waiting.set(user, works);
      return work?.();
    }
  };
  return (user, work) =>
    new Promise((resolve, reject) => {
      const works = waiting.get(user) ?? [];
      waiting.set(user, works);
      works.push(() => work().then(resolve, reject));
      void withSlot(runNext);
    });
}

/** Runs one piece of work at a time for each key. */
export type KeyedMutex = <T>(key: string, work: () => Promise<T>) => Promise<T>;

/**
 * Creates a mutex in which a key takes memory only while work for it runs or waits. It is a chain
 * of promises: the library's mutex makes several for each piece of work, and a prompt has four
 * pieces that do not wait.
 */
export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key);
    const running = before ? before.then(work) : work();
    const ended = running.then(ignoreResult, ignoreResult);
    last.set(key, ended);
    try {
      return await running;
    } finally {
      if (last.get(key) === ended) last.delete(key);
    }
  };
}

function ignoreResult(): void {}

/**
 * Acts on all items, with a limited number at a time. The first failure stops the rest; begun items
 * end first.
 */
export async function forEachConcurrently<T>(
  maxConcurrent: number,
  items: Iterable<T>,
  act: (item: T) => Promise<void>,
): Promise<void> {
  const remaining = items[Symbol.iterator]();
  let isStopped = false;
  const worker = async (): Promise<void> => {
    while (!isStopped) {
      const next = remaining.next();
      if (next.done === true) return;
      await act(next.value);
    }
  };
  const stop = (): void => void (isStopped = true);
  const running = Array.from({ length: maxConcurrent }, () => worker().finally(stop));
  for (const end of await Promise.allSettled(running)) {
    if (end.status === 'rejected') throw end.reason;
  }
}

/** A promise that other code resolves. */
export type Deferred = { readonly promise: Promise<void>; readonly resolve: () => void };

export function createDeferred(): Deferred {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** Settles as the promise does, or rejects when the signal aborts before. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
  });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}

type OnError = (error: unknown) => void;

/** Tasks that run in the background until their owner closes. */
export class BackgroundTasks {
  readonly #stop = new AbortController();
  readonly #running = new Set<Promise<void>>();

  /** Aborted by `close`. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /**
   * Starts a task. The promise never rejects; `onError` gets the error, unless the task was
   * stopped.
   */
  run(task: () => Promise<void>, onError: OnError): Promise<void> {
    const running = this.#runToEnd(task, onError).finally(() => this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Resolves when all tasks have ended. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
  }

  async #runToEnd(task: () => Promise<void>, onError: OnError): Promise<void> {
    try {
      await task();
    } catch (error) {
      if (!this.signal.aborted) onError(error);
    }
  }
}

/**
 * Runs a task without overlaps: all calls during a run share the next run, which begins after it.
 */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  let next: Promise<void> | undefined;
  return () =>
    (next ??= last
      .catch(() => {})
      .then(() => {
        next = undefined;
        return (last = task());
      }));
}

type Lazy<T> = {
  get(): Promise<T>;
  /** Returns it if it was needed before, otherwise `undefined`. */
  known(): Promise<T> | undefined;
};

/** Opens something when it is first needed. After a failure the next call tries again. */
export function lazily<T>(open: () => Promise<T>): Lazy<T> {
  let opened: Promise<T> | undefined;
  return {
    get() {
      opened ??= open().catch((error: unknown) => {
        opened = undefined;
        throw error;
      });
      return opened;
    },
    known: () => opened,
  };
}
