import { type Clock, systemClock } from '../lib/clock.ts';
import type { Caller, JobApi, JobEvent } from '../protocol/job-api.ts';
import { drainEvents } from '../job-events/job-feed.ts';

/** How long the events of a new job are buffered for its submitter. */
const BUFFER_MS = 2000;
/**
 * The readers of an event stream. A Holdover in front of this one reads the events as well as its
 * client.
 */
const READERS = ['client', 'holdover'] as const;

type Recipient = { readonly jobId: string; readonly reader: (typeof READERS)[number] };

export interface EarlyEvents {
  /** Subscribes, and gives up after `BUFFER_MS`. Never rejects. */
  open(caller: Caller, jobId: string): Promise<void>;
  /**
   * Removes the events for a reader that knows the end of the job: it must get no earlier status.
   */
  forget(caller: Caller, recipient: Recipient): void;
  /**
   * Returns all events since `open`, for the first request of each reader. Ends with the signal.
   */
  take(
    caller: Caller,
    recipient: Recipient,
    signal: AbortSignal,
  ): AsyncIterable<JobEvent> | undefined;
}

/**
 * Subscribes to a new job for the client that submitted it. A job that starts at once is ahead of
 * its `201` and of the stream that is opened after it, and a stream does not repeat missed events.
 */
export function createEarlyEvents(
  jobs: Pick<JobApi, 'events'>,
  clock: Clock = systemClock,
): EarlyEvents {
  /** The streams that no request has taken. */
  const streams = new Map<string, EarlyStream>();

  /** Removes and returns the stream of this reader, so that it is given to no other one. */
  function remove(caller: Caller, recipient: Recipient): EarlyStream | undefined {
    const name = nameOf(caller, recipient);
    const stream = streams.get(name);
    streams.delete(name);
    stream?.cancelExpiry();
    return stream;
  }

  function forget(caller: Caller, recipient: Recipient): void {
    const stream = remove(caller, recipient);
    if (stream) close(stream);
  }

  async function subscribe(caller: Caller, recipient: Recipient): Promise<void> {
    const { jobId } = recipient;
    const cancelExpiry = clock.callAfter(BUFFER_MS, () => forget(caller, recipient));
    const stream: EarlyStream = { controller: new AbortController(), cancelExpiry };
    streams.set(nameOf(caller, recipient), stream);
    try {
      const events = await jobs.events(caller, jobId, stream.controller.signal);
      if (events.ok) stream.events = events.value;
      if (stream.controller.signal.aborted) close(stream);
    } catch {
      // A later request for the events gets the reason of the failure itself.
    }
  }

  return {
    async open(caller, jobId) {
      const recipients = READERS.map((reader) => ({ jobId, reader }));
      if (recipients.some((recipient) => streams.has(nameOf(caller, recipient)))) return;
      await Promise.all(recipients.map((recipient) => subscribe(caller, recipient)));
    },
    forget,
    take(caller, recipient, signal) {
      const stream = remove(caller, recipient);
      if (!stream) return undefined;
      const { controller, events } = stream;
      if (signal.aborted || !events) controller.abort();
      else signal.addEventListener('abort', () => controller.abort(), { once: true });
      return events;
    },
  };
}

type EarlyStream = {
  readonly controller: AbortController;
  readonly cancelExpiry: () => void;
  events?: AsyncIterable<JobEvent>;
};

function close({ controller, events }: EarlyStream): void {
  controller.abort();
  // No client reads these events, so an error has no recipient.
  if (events) drainEvents(events).catch(() => {});
}

function nameOf({ user }: Caller, { jobId, reader }: Recipient): string {
  return `${user} ${reader} ${jobId}`;
}
