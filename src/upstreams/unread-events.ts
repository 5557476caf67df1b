import type { JobEvent } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';

/**
 * The most pictures that wait for a reader. A burst that arrives at once is delivered completely.
 * @internal
 */
export const MAX_WAITING_PREVIEWS = 8;

/** Drops the oldest waiting preview when there are too many. No other event is dropped. */
export function dropOldestPreview<Item>(waiting: Item[], isPreview: (item: Item) => boolean): void {
  let seen = 0;
  for (let at = waiting.length - 1; at >= 0; at--) {
    if (isPreview(waiting[at]!) && ++seen >= MAX_WAITING_PREVIEWS) waiting.splice(at, 1);
  }
}

function isPreview({ event }: JobEvent): boolean {
  return event === 'preview';
}

/** A reader that is this many events behind gets only the latest progress. */
const MAX_UNREAD_PROGRESS = 1000;
/** The number of taken events that are cut off together. */
const COMPACT_EVERY = 1024;
/** The assumed size of one event, beside its texts. */
const EVENT_BYTES = 200;
/** More than any reader catches up with. A graph of 10 000 nodes has 20 000 events and more. */
const LIMITS = { events: 50_000, bytes: 64 * 1024 * 1024 } as const;

/**
 * The events of a job that one reader has not taken, in order: the latest eight previews, all
 * progress until a thousand events wait and then only the latest, and all other events.
 */
export class UnreadEvents {
  #items: (JobEvent | undefined)[] = [];
  #taken = 0;
  #size = 0;
  #bytes = 0;
  #progressAt = -1;
  #previewsAt: number[] = [];

  push(event: JobEvent): void {
    if (event.event === 'progress') {
      const isBehind = this.#size >= MAX_UNREAD_PROGRESS && this.#progressAt >= this.#taken;
      if (isBehind) this.#remove(this.#progressAt);
      this.#progressAt = this.#items.length;
    } else if (isPreview(event)) {
      this.#previewsAt = this.#previewsAt.filter((at) => at >= this.#taken);
      if (this.#previewsAt.length >= MAX_WAITING_PREVIEWS)
        this.#remove(this.#previewsAt.shift() ?? -1);
      this.#previewsAt.push(this.#items.length);
    }
    this.#items.push(event);
    this.#size++;
    this.#bytes += bytesOf(event);
  }

  shift(): JobEvent | undefined {
    while (this.#taken < this.#items.length) {
      const event = this.#remove(this.#taken++);
      this.#compact();
      if (event) return event;
    }
    return undefined;
  }

  clear(): void {
    this.#items = [];
    this.#taken = 0;
    this.#size = 0;
    this.#bytes = 0;
    this.#progressAt = -1;
    this.#previewsAt = [];
  }

  get size(): number {
    return this.#size;
  }

  /** True when the reader is too far behind. */
  isOverLimit(): boolean {
    return this.#size > LIMITS.events || this.#bytes > LIMITS.bytes;
  }

  #remove(at: number): JobEvent | undefined {
    const event = this.#items[at];
    if (event === undefined) return undefined;
    this.#items[at] = undefined;
    this.#size--;
    this.#bytes -= bytesOf(event);
    return event;
  }

  #compact(): void {
    // An empty list takes no memory. The event of a waiting job is taken at once.
    if (this.#size === 0) return this.clear();
    if (this.#taken < COMPACT_EVERY) return;
    this.#items = this.#items.slice(this.#taken);
    this.#progressAt -= this.#taken;
    this.#previewsAt = this.#previewsAt.map((at) => at - this.#taken);
    this.#taken = 0;
  }
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
