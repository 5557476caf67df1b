import type { JobEvent } from '../wire/jobs.ts';
import { createUnreadEvents } from '../wire/unread-events.ts';

/** What a reader has not taken yet. */
export type Backlog = AsyncIterable<JobEvent> & {
  /** False when the reader is hopelessly behind. */
  push(event: JobEvent): boolean;
  /** No more events; what waits is still read. */
  end(): void;
};

/** Keeps every event in order, but of previews and progress only the latest. */
export function createBacklog(): Backlog {
  const waiting = createUnreadEvents();
  let ended = false;
  let wake: () => void = () => {};
  return {
    push(event) {
      waiting.push(event);
      wake();
      return !waiting.isOverLimit();
    },
    end() {
      ended = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const event = waiting.shift();
        if (event) yield event;
        else if (ended) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
