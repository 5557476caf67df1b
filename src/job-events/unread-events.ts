import type { JobEvent } from '../protocol/job-api.ts';
import type { Json } from '../protocol/json.ts';

/** The most pictures that wait for a reader. A burst that arrives at once is delivered completely. */
const MAX_WAITING_PREVIEWS = 8;

/** Removes and returns the oldest waiting preview when there are too many. */
export function dropOldestPreview<Item>(
  waiting: Item[],
  isPreview: (item: Item) => boolean,
): Item | undefined {
  return dropFromEnd(waiting, MAX_WAITING_PREVIEWS, isPreview);
}

/** Removes and returns the item that is the `number`th from the end of those that match. */
function dropFromEnd<Item>(
  items: Item[],
  number: number,
  matches: (item: Item) => boolean,
): Item | undefined {
  let seen = 0;
  const at = items.findLastIndex((item) => matches(item) && ++seen === number);
  return at < 0 ? undefined : items.splice(at, 1)[0];
}

/** A reader that is this many events behind gets only the latest progress. */
const MAX_UNREAD_PROGRESS = 1000;
/** The assumed size of one event, beside its texts. */
const EVENT_BYTES = 200;
/** More than any reader catches up with. A graph of 10 000 nodes has 20 000 events and more. */
const LIMITS = { events: 50_000, bytes: 64 * 1024 * 1024 } as const;

/**
 * The events of a job that one reader has not taken, in order: the latest eight previews, all
 * progress until a thousand events wait and then only the latest, and all other events.
 */
export class UnreadEvents {
  #events: JobEvent[] = [];
  #bytes = 0;

  push(event: JobEvent): void {
    this.#makeRoomFor(event);
    this.#events.push(event);
    this.#bytes += bytesOf(event);
  }

  shift(): JobEvent | undefined {
    const event = this.#events.shift();
    if (event) this.#bytes -= bytesOf(event);
    return event;
  }

  clear(): void {
    this.#events = [];
    this.#bytes = 0;
  }

  get size(): number {
    return this.#events.length;
  }

  /** True when the reader is too far behind. */
  isOverLimit(): boolean {
    return this.size > LIMITS.events || this.#bytes > LIMITS.bytes;
  }

  #makeRoomFor({ event: name }: JobEvent): void {
    const isSame = ({ event }: JobEvent): boolean => event === name;
    let dropped: JobEvent | undefined;
    if (name === 'preview') dropped = dropOldestPreview(this.#events, isSame);
    if (name === 'progress' && this.size >= MAX_UNREAD_PROGRESS)
      dropped = dropFromEnd(this.#events, 1, isSame);
    if (dropped) this.#bytes -= bytesOf(dropped);
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
