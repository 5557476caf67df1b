import type { JobEvent } from '../protocol/job-api.ts';
import { type Deferred, createDeferred } from '../lib/concurrency.ts';
import { EventSubscriber } from './event-subscriber.ts';
import { UnreadEvents } from './unread-events.ts';

type StatusEvent = Extract<JobEvent, { event: 'status' }>;
type ProgressEvent = Extract<JobEvent, { event: 'progress' }>;
type PreviewEvent = Extract<JobEvent, { event: 'preview' }>;

/** The events of one job, for any number of subscribers. */
export type JobFeed = ReturnType<typeof createJobFeed>;

/** Creates the feed of a job in the given state. */
export function createJobFeed(initial: StatusEvent['data']) {
  const subscribers = new Set<EventSubscriber>();
  const live = { remove: (ended: EventSubscriber): void => void subscribers.delete(ended) };
  let status: StatusEvent = { event: 'status', data: initial };
  let progress: ProgressEvent | undefined;
  let preview: PreviewEvent | undefined;
  let held: { readonly events: UnreadEvents; readonly released: Deferred } | undefined;
  let isEnded = false;
  const send = (event: JobEvent): void => {
    if (event.event === 'status') status = event;
    if (event.event === 'progress') progress = event;
    if (event.event === 'preview') preview = withoutStep(event);
    for (const subscriber of subscribers) subscriber.push(event);
  };
  const end = (): void => {
    isEnded = true;
    if (held) return;
    for (const subscriber of subscribers) subscriber.end();
  };
  return {
    status: (): StatusEvent['data'] => status.data,
    emit(event: JobEvent): void {
      if (held && !isPlaceInQueue(event)) held.events.push(event);
      else send(event);
    },
    /** Holds the events of its run back until `release`: their first subscriber is on its way. */
    hold(): void {
      held = { events: new UnreadEvents(), released: createDeferred() };
    },
    release(): void {
      const { events, released } = held ?? {};
      held = undefined;
      for (let event = events?.shift(); event; event = events?.shift()) send(event);
      if (isEnded) end();
      released?.resolve();
    },
    /** `undefined`: no events are held back. */
    whenReleased: (): Promise<void> | undefined => held?.released.promise,
    /**
     * Subscribes synchronously. A subscriber gets the latest status, progress and preview first, then
     * every new event.
     */
    subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
      const subscriber = new EventSubscriber(live, signal);
      for (const event of [status, progress, preview]) if (event) subscriber.push(event);
      subscribers.add(subscriber);
      if (signal.aborted) subscriber.end();
      return subscriber;
    },
    /** Ends the feed; subscribers end once they have read their remaining events. */
    end,
  };
}

function isPlaceInQueue(event: JobEvent): boolean {
  return event.event === 'status' && event.data.status === 'queued';
}

/** The events of a job that is over: its last status. */
export async function* endedJobEvents(data: StatusEvent['data']): AsyncGenerator<JobEvent> {
  yield { event: 'status', data };
}

/** Ends events that are not read yet: a generator releases nothing before it is started. */
export async function drainEvents(events: AsyncIterable<JobEvent>): Promise<void> {
  for await (const event of events) void event;
}

/** A preview replayed to a new subscriber follows its step: it does not precede the next one. */
function withoutStep({ data }: PreviewEvent): PreviewEvent {
  const { x_with_step: _, ...rest } = data;
  return { event: 'preview', data: rest };
}
