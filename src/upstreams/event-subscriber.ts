import type { JobEvent } from '../protocol/job-api.ts';
import { UnreadEvents } from './unread-events.ts';

/** Where a subscriber is until it ends. */
type SubscriberSet = { remove(subscriber: EventSubscriber): void };

/**
 * Holds the unread events of a slow subscriber: only the latest previews and progress, everything
 * else in full.
 */
export class EventSubscriber implements AsyncIterableIterator<JobEvent> {
  readonly #unread = new UnreadEvents();
  readonly #subscribers: SubscriberSet;
  readonly #signal: AbortSignal;
  #wake: (() => void) | undefined;
  #isEnded = false;

  constructor(subscribers: SubscriberSet, signal: AbortSignal) {
    this.#subscribers = subscribers;
    this.#signal = signal;
    signal.addEventListener('abort', this);
  }

  push(event: JobEvent): void {
    this.#unread.push(event);
    this.#wake?.();
  }

  /** It is so far behind that it should end with the events it holds. */
  isOverLimit(): boolean {
    return this.#unread.isOverLimit();
  }

  end(): void {
    this.#isEnded = true;
    this.#signal.removeEventListener('abort', this);
    this.#subscribers.remove(this);
    this.#wake?.();
  }

  /** The signal aborts. */
  handleEvent(): void {
    this.#unread.clear();
    this.end();
  }

  async next(): Promise<IteratorResult<JobEvent, undefined>> {
    while (this.#unread.size === 0 && !this.#isEnded)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    const value = this.#unread.shift();
    return value ? { value, done: false } : { value: undefined, done: true };
  }

  async return(): Promise<IteratorResult<JobEvent, undefined>> {
    this.handleEvent();
    return { value: undefined, done: true };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}
