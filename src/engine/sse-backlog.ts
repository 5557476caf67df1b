import type { JobEvent } from '../wire/jobs.ts';
import { isPreview, makeRoomForPreview } from '../wire/previews.ts';

/** More unread events than any reader catches up with. */
const MAX_WAITING = 10_000;

/** What a reader has not taken yet. */
export type Backlog = AsyncIterable<JobEvent> & {
  /** False when the reader is hopelessly behind. */
  push(event: JobEvent): boolean;
  /** No more events; what waits is still read. */
  end(): void;
};

/** Keeps every event in order, but of the previews only the latest. */
export function createBacklog(): Backlog {
  const waiting: JobEvent[] = [];
  let ended = false;
  let wake: () => void = () => {};
  return {
    push(event) {
      if (isPreview(event)) makeRoomForPreview(waiting, isPreview);
      waiting.push(event);
      wake();
      return waiting.length <= MAX_WAITING;
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
