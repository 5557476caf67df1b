import type { JobEvent } from '../protocol/job-api.ts';
import { UnreadEvents } from './unread-events.ts';

const END: IteratorResult<JobEvent, undefined> = { value: undefined, done: true };

/**
 * Holds the unread events of a slow subscriber, as many as `UnreadEvents` keeps. One that is too far
 * behind ends with the events that it holds. It may subscribe again.
 */
export class EventSubscriber implements AsyncIterableIterator<JobEvent> {
  readonly #unread = new UnreadEvents();
  readonly #onEnd: () => void;
  readonly #signal: AbortSignal;
  /** Resolves the read of a reader that waits for an event. */
  #deliver: ((result: IteratorResult<JobEvent, undefined>) => void) | undefined;
  #isEnded = false;

  constructor(signal: AbortSignal, onEnd: () => void) {
    this.#onEnd = onEnd;
    this.#signal = signal;
    signal.addEventListener('abort', this);
  }

  push(event: JobEvent): void {
    const deliver = this.#deliver;
    this.#deliver = undefined;
    if (deliver) return deliver({ value: event, done: false });
    this.#unread.push(event);
    if (this.#unread.isOverLimit()) this.end();
  }

  end(): void {
    this.#isEnded = true;
    this.#signal.removeEventListener('abort', this);
    this.#onEnd();
    this.#deliver?.(END);
    this.#deliver = undefined;
  }

  /** Called when the signal aborts. */
  handleEvent(): void {
    this.#unread.clear();
    this.end();
  }

  next(): Promise<IteratorResult<JobEvent, undefined>> {
    const value = this.#unread.shift();
    if (value) return Promise.resolve({ value, done: false });
    if (this.#isEnded) return Promise.resolve(END);
    return new Promise((resolve) => (this.#deliver = resolve));
  }

  async return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.handleEvent();
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
