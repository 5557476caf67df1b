import type { JobEvent } from '../protocol/job-api.ts';
import { createUnreadEvents } from '../upstreams/unread-events.ts';

/** The events that a reader has not taken yet. */
export type EventBacklog = AsyncIterable<JobEvent> & {
  /** False when the reader is too far behind. */
  push(event: JobEvent): boolean;
  /** No more events; waiting ones are still read. */
  end(): void;
};

/** Keeps every event in order, except that only the latest previews and progress are kept. */
export function createEventBacklog(): EventBacklog {
  const unread = createUnreadEvents();
  let isEnded = false;
  let wake: () => void = () => {};
  return {
    push(event) {
      unread.push(event);
      wake();
      return !unread.isOverLimit();
    },
    end() {
      isEnded = true;
      wake();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const event = unread.shift();
        if (event) yield event;
        else if (isEnded) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
