import type { JobEvent } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';

/**
 * Most pictures that wait for a reader: a burst that arrives in one piece is delivered completely.
 * @internal
 */
export const MAX_WAITING_PREVIEWS = 8;

/** Of the previews that wait, the oldest goes when there are too many; nothing else ever does. */
export function dropOldestPreview<Item>(waiting: Item[], isPreview: (item: Item) => boolean): void {
  let seen = 0;
  for (let at = waiting.length - 1; at >= 0; at--) {
    if (isPreview(waiting[at]!) && ++seen >= MAX_WAITING_PREVIEWS) waiting.splice(at, 1);
  }
}

function isPreview({ event }: JobEvent): boolean {
  return event === 'preview';
}

/** A reader that is so many events behind receives only the latest progress. */
const MAX_UNREAD_PROGRESS = 100;
/** Taken events are cut off in stretches of so many. */
const COMPACT_EVERY = 1024;
/** Of one event, beside the texts in it. */
const EVENT_BYTES = 200;
/** More than any reader catches up with; a graph of 10 000 nodes has 20 000 events and more. */
const LIMITS = { events: 50_000, bytes: 64 * 1024 * 1024 } as const;

/**
 * The events of a job that one reader has not taken, in order; of the previews the latest only.
 */
export function createUnreadEvents() {
  let items: (JobEvent | undefined)[] = [];
  let taken = 0;
  let size = 0;
  let bytes = 0;
  let progressAt = -1;
  let previewsAt: number[] = [];

  function remove(at: number): JobEvent | undefined {
    const event = items[at];
    if (event === undefined) return undefined;
    items[at] = undefined;
    size--;
    bytes -= bytesOf(event);
    return event;
  }

  function compact(): void {
    if (taken < COMPACT_EVERY) return;
    items = items.slice(taken);
    progressAt -= taken;
    previewsAt = previewsAt.map((at) => at - taken);
    taken = 0;
  }

  return {
    push(event: JobEvent): void {
      if (event.event === 'progress') {
        if (size >= MAX_UNREAD_PROGRESS && progressAt >= taken) remove(progressAt);
        progressAt = items.length;
      } else if (isPreview(event)) {
        previewsAt = previewsAt.filter((at) => at >= taken);
        if (previewsAt.length >= MAX_WAITING_PREVIEWS) remove(previewsAt.shift() ?? -1);
        previewsAt.push(items.length);
      }
      items.push(event);
      size++;
      bytes += bytesOf(event);
    },
    shift(): JobEvent | undefined {
      while (taken < items.length) {
        const event = remove(taken++);
        compact();
        if (event) return event;
      }
      return undefined;
    },
    clear(): void {
      [items, taken, size, bytes, progressAt, previewsAt] = [[], 0, 0, 0, -1, []];
    },
    size: (): number => size,
    /** True when the reader is hopelessly behind. */
    isOverLimit: (): boolean => size > LIMITS.events || bytes > LIMITS.bytes,
  };
}

function bytesOf(event: JobEvent): number {
  if (event.event === 'preview') return EVENT_BYTES + event.data.bytes.byteLength;
  if (event.event === 'x_text') return EVENT_BYTES + event.data.text.length;
  if (event.event === 'x_node') return EVENT_BYTES + charsIn(event.data.ui ?? null);
  return EVENT_BYTES;
}

function charsIn(value: Json): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let chars = 0;
  for (const item of Object.values(value) as Json[]) chars += 8 + charsIn(item);
  return chars;
}
