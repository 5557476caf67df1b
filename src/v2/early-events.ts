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

/**
 * Subscribes to a new job for the client that submitted it. A job that starts at once is ahead of
 * its `201` and of the stream that is opened after it, and a stream does not repeat missed events.
 */
export class EarlyEvents {
  readonly #jobs: Pick<JobApi, 'events'>;
  readonly #clock: Clock;
  /** The streams that no request has taken. */
  readonly #streams = new Map<string, EarlyStream>();

  constructor(jobs: Pick<JobApi, 'events'>, clock: Clock = systemClock) {
    this.#jobs = jobs;
    this.#clock = clock;
  }

  /** Subscribes, and gives up after `BUFFER_MS`. Never rejects. */
  async open(caller: Caller, jobId: string): Promise<void> {
    const recipients = READERS.map((reader) => ({ jobId, reader }));
    if (recipients.some((recipient) => this.#streams.has(nameOf(caller, recipient)))) return;
    await Promise.all(recipients.map((recipient) => this.#subscribe(caller, recipient)));
  }

  /**
   * Removes the events for a reader that knows the end of the job: it must get no earlier status.
   */
  forget(caller: Caller, recipient: Recipient): void {
    const stream = this.#remove(caller, recipient);
    if (stream) close(stream);
  }

  /**
   * Returns all events since `open`, for the first request of each reader. Ends with the signal.
   */
  take(
    caller: Caller,
    recipient: Recipient,
    signal: AbortSignal,
  ): AsyncIterable<JobEvent> | undefined {
    const stream = this.#remove(caller, recipient);
    if (!stream) return undefined;
    const { controller, events } = stream;
    if (signal.aborted || !events) controller.abort();
    else signal.addEventListener('abort', () => controller.abort(), { once: true });
    return events;
  }

  /** Removes and returns the stream of this reader, so that it is given to no other one. */
  #remove(caller: Caller, recipient: Recipient): EarlyStream | undefined {
    const name = nameOf(caller, recipient);
    const stream = this.#streams.get(name);
    this.#streams.delete(name);
    stream?.cancelExpiry();
    return stream;
  }

  async #subscribe(caller: Caller, recipient: Recipient): Promise<void> {
    const cancelExpiry = this.#clock.callAfter(BUFFER_MS, () => this.forget(caller, recipient));
    const stream: EarlyStream = { controller: new AbortController(), cancelExpiry };
    this.#streams.set(nameOf(caller, recipient), stream);
    try {
      const { signal } = stream.controller;
      const events = await this.#jobs.events(caller, recipient.jobId, signal);
      if (events.ok) stream.events = events.value;
      if (signal.aborted) close(stream);
    } catch {
      // A later request for the events gets the reason of the failure itself.
    }
  }
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
