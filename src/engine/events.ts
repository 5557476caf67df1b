import type { JobEvent } from '../wire/jobs.ts';
import { createUnreadEvents } from '../wire/unread-events.ts';

type StatusEvent = Extract<JobEvent, { event: 'status' }>;
type ProgressEvent = Extract<JobEvent, { event: 'progress' }>;
type PreviewEvent = Extract<JobEvent, { event: 'preview' }>;

/** The events of one job, for any number of listeners. */
export type Feed = {
  emit(event: JobEvent): void;
  /** Listens from this very moment: first the latest status, progress and preview, then what follows. */
  listen(signal: AbortSignal): AsyncIterable<JobEvent>;
  /** No more events; listeners end once they have read what they have. */
  end(): void;
  status(): StatusEvent['data'];
};

/** Starts the feed of a job that is in the given state. */
export function createFeed(initial: StatusEvent['data']): Feed {
  const mailboxes = new Set<Mailbox>();
  let status: StatusEvent = { event: 'status', data: initial };
  let progress: ProgressEvent | undefined;
  let preview: PreviewEvent | undefined;
  return {
    status: () => status.data,
    emit(event) {
      if (event.event === 'status') status = event;
      if (event.event === 'progress') progress = event;
      if (event.event === 'preview') preview = withoutStep(event);
      for (const mailbox of mailboxes) mailbox.push(event);
    },
    listen(signal) {
      const mailbox = createMailbox(() => mailboxes.delete(mailbox), signal);
      for (const event of [status, progress, preview]) if (event) mailbox.push(event);
      mailboxes.add(mailbox);
      if (signal.aborted) mailbox.end();
      return mailbox;
    },
    end() {
      for (const mailbox of mailboxes) mailbox.end();
    },
  };
}

/** The feed of a job that is over. */
export async function* endedFeed(data: StatusEvent['data']): AsyncGenerator<JobEvent> {
  yield { event: 'status', data };
}

/** Ends events nobody has begun to read: a generator lets go of nothing before it is started. */
export async function drainEvents(events: AsyncIterable<JobEvent>): Promise<void> {
  for await (const event of events) void event;
}

type Mailbox = AsyncIterableIterator<JobEvent> & { push(event: JobEvent): void; end(): void };

/** Holds what a slow listener has not read: of previews and progress the latest, everything else in full. */
function createMailbox(onEnd: () => void, signal: AbortSignal): Mailbox {
  const waiting = createUnreadEvents();
  let wake: (() => void) | undefined;
  let ended = false;
  const end = (): void => {
    ended = true;
    signal.removeEventListener('abort', abort);
    onEnd();
    wake?.();
  };
  const abort = (): void => {
    waiting.clear();
    end();
  };
  signal.addEventListener('abort', abort);
  return {
    push(event) {
      waiting.push(event);
      wake?.();
    },
    end,
    async next() {
      while (waiting.size() === 0 && !ended) await new Promise<void>((resolve) => (wake = resolve));
      const value = waiting.shift();
      return value ? { value, done: false } : { value: undefined, done: true };
    },
    async return() {
      abort();
      return { value: undefined, done: true };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** A picture shown on connect comes after its step, not before the next one. */
function withoutStep({ data }: PreviewEvent): PreviewEvent {
  const { x_with_step: _, ...rest } = data;
  return { event: 'preview', data: rest };
}
