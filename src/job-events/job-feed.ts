import type { JobEvent, JobEventData, JobEventOf } from '../protocol/job-api.ts';
import { type Deferred, createDeferred } from '../lib/concurrency.ts';
import { EventSubscriber } from './event-subscriber.ts';
import { UnreadEvents } from './unread-events.ts';

/**
 * The events of one job, for any number of subscribers. A subscriber gets the latest status,
 * progress and preview first, then every new event.
 */
export class JobFeed {
  readonly #onEmpty: () => void;
  readonly #subscribers = new Set<EventSubscriber>();
  #status: JobEventOf<'status'> | undefined;
  #progress: JobEventOf<'progress'> | undefined;
  #preview: JobEventOf<'preview'> | undefined;
  #held: { readonly events: UnreadEvents; readonly released: Deferred } | undefined;
  #isEnded = false;

  /** `onEmpty` is called when the last subscriber leaves before the end. */
  constructor(initial?: JobEventData['status'], onEmpty = (): void => {}) {
    this.#status = initial && { event: 'status', data: initial };
    this.#onEmpty = onEmpty;
  }

  status(): JobEventData['status'] | undefined {
    return this.#status?.data;
  }

  progress(): JobEventData['progress'] | undefined {
    return this.#progress?.data;
  }

  emit(event: JobEvent): void {
    if (this.#held && !isPlaceInQueue(event)) this.#held.events.push(event);
    else this.#send(event);
  }

  /**
   * Delays the events of the run until `release`, since the first subscriber is about to subscribe.
   */
  hold(): void {
    this.#held = { events: new UnreadEvents(), released: createDeferred() };
  }

  release(): void {
    const { events, released } = this.#held ?? {};
    this.#held = undefined;
    for (let event = events?.shift(); event; event = events?.shift()) this.#send(event);
    if (this.#isEnded) this.end();
    released?.resolve();
  }

  /** Resolves at `release`. `undefined`: no events are delayed. */
  whenReleased(): Promise<void> | undefined {
    return this.#held?.released.promise;
  }

  /**
   * Subscribes synchronously: until the end, until `signal` aborts, or until the subscriber stops
   * reading. A feed that has ended gives only its last status.
   */
  subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
    const subscriber = new EventSubscriber(signal, () => this.#remove(subscriber));
    const isOver = this.#isEnded && !this.#held;
    const latest = isOver ? [this.#status] : [this.#status, this.#progress, this.#preview];
    for (const event of latest) if (event) subscriber.push(event);
    this.#subscribers.add(subscriber);
    if (signal.aborted) subscriber.handleEvent();
    else if (isOver) subscriber.end();
    return subscriber;
  }

  #remove(subscriber: EventSubscriber): void {
    const isRemoved = this.#subscribers.delete(subscriber);
    if (isRemoved && this.#subscribers.size === 0 && !this.#isEnded) this.#onEmpty();
  }

  /** Ends the feed. Subscribers end when they have read their remaining events. */
  end(): void {
    this.#isEnded = true;
    if (this.#held) return;
    for (const subscriber of this.#subscribers) subscriber.end();
  }

  #send(event: JobEvent): void {
    if (event.event === 'status') this.#status = event;
    if (event.event === 'progress') this.#progress = event;
    if (event.event === 'preview') this.#preview = withoutStep(event);
    for (const subscriber of this.#subscribers) subscriber.push(event);
  }
}

function isPlaceInQueue(event: JobEvent): boolean {
  return event.event === 'status' && event.data.status === 'queued';
}

/** Yields the events of a job that is over: its last status. */
export async function* endedJobEvents(data: JobEventData['status']): AsyncGenerator<JobEvent> {
  yield { event: 'status', data };
}

/** Ends events that are not read yet: a generator releases nothing before its start. */
export async function drainEvents(events: AsyncIterable<JobEvent>): Promise<void> {
  for await (const event of events) void event;
}

/**
 * Removes the step of a preview that is replayed to a new subscriber: the preview follows its step
 * there, and does not precede the next one.
 */
function withoutStep({ data }: JobEventOf<'preview'>): JobEventOf<'preview'> {
  const { x_with_step: _, ...rest } = data;
  return { event: 'preview', data: rest };
}
