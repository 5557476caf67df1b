import { type Clock, systemClock } from '../lib/clock.ts';
import type { Caller, JobApi, JobEvent } from '../protocol/job-api.ts';
import { drainEvents } from '../upstreams/job-feed.ts';

/** How long the events of a new job are buffered for its submitter. */
const BUFFER_MS = 2000;

export type EarlyEvents = ReturnType<typeof createEarlyEvents>;

/**
 * Subscribes to a new job on behalf of its submitter. A job that starts at once is ahead of its
 * `201` and of the stream opened after it, and a stream does not repeat the events it missed.
 */
export function createEarlyEvents(jobs: Pick<JobApi, 'events'>, clock: Clock = systemClock) {
  const streams = new Map<string, EarlyStream>();

  function remove(name: string): EarlyStream | undefined {
    const stream = streams.get(name);
    streams.delete(name);
    stream?.expiry.abort();
    return stream;
  }

  return {
    /** Subscribes, and gives up after `BUFFER_MS`. Never rejects. */
    async open(caller: Caller, jobId: string): Promise<void> {
      const name = nameOf(caller, jobId);
      if (streams.has(name)) return;
      const controller = new AbortController();
      const expiry = new AbortController();
      const stream: EarlyStream = { controller, expiry };
      clock.sleep(BUFFER_MS, expiry.signal).then(
        () => close(remove(name)),
        () => {},
      );
      streams.set(name, stream);
      try {
        const events = await jobs.events(caller, jobId, controller.signal);
        if (events.ok) stream.events = events.value;
        else remove(name);
        if (controller.signal.aborted) close(stream);
      } catch {
        // A request for the events gets the reason itself.
        remove(name);
      }
    },
    /** All events since `open`, for the first request; ends with the signal. */
    take(caller: Caller, jobId: string, signal: AbortSignal): AsyncIterable<JobEvent> | undefined {
      const stream = remove(nameOf(caller, jobId));
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
  /** Aborted when the stream is taken before it expires. */
  readonly expiry: AbortController;
  events?: AsyncIterable<JobEvent>;
};

function close(stream: EarlyStream | undefined): void {
  stream?.controller.abort();
  // No client reads these events: an error has no recipient.
  if (stream?.events) drainEvents(stream.events).catch(() => {});
}

function nameOf({ user }: Caller, jobId: string): string {
  return `${user} ${jobId}`;
}
