import { getHeapStatistics } from 'node:v8';
import { totalMemoryBytes } from '../../lib/memory.ts';

/** A body that has not arrived as a whole. */
export type ArrivingBody = {
  /** The announced bytes for which there is no reservation. */
  rest: number;
};

/** Releases a part of the memory. Called once. */
export type Release = () => void;

type BodyMemoryOptions = {
  readonly limitBytes: number;
  /** The bytes of accepted bodies that are kept until their prompts end. */
  readonly queuedBytes?: () => number;
  readonly waitMs?: number;
};

/** The memory for each byte of a body while it is read, checked, written as text and stored. */
const MEMORY_PER_BODY_BYTE = 4;
/** The bytes in memory for each byte of a prompt that waits or runs. */
const MEMORY_PER_QUEUED_BYTE = 2;
/**
 * The part of V8's limit for the heap that holds young objects only; bodies are not among them. V8
 * reports only the sum. Its part is 48 MiB up to Node 22.
 */
const YOUNG_OBJECTS_BYTES = 192 * 1024 * 1024;
const YOUNG_OBJECTS_BYTES_BEFORE_24 = 48 * 1024 * 1024;
/** The memory that the process needs without any body. */
const BASE_MEMORY_BYTES = 96 * 1024 * 1024;
/** Bodies up to this size have a reserve of their own. */
const SMALL_BYTES = 64 * 1024;
const SMALL_RESERVE = 1 / 8;
const WAIT_MS = 5_000;
/** How often the memory is checked again: prompts that end release theirs without a signal. */
const RECHECK_MS = 100;

/**
 * Returns the memory that a process may use for bodies: most of its heap, or of its container's
 * memory.
 */
export function bodyMemoryBytes(): number {
  const [nodeMajor] = process.versions.node.split('.');
  const young = Number(nodeMajor) < 24 ? YOUNG_OBJECTS_BYTES_BEFORE_24 : YOUNG_OBJECTS_BYTES;
  const heap = Math.min(getHeapStatistics().heap_size_limit - young, totalMemoryBytes() * 0.75);
  return Math.max(32 * 1024 * 1024, (heap - BASE_MEMORY_BYTES) * 0.75);
}

type Waiting = {
  readonly bytes: number;
  readonly body: ArrivingBody | undefined;
  readonly resolveWith: (release: Release | undefined) => void;
};

/**
 * The memory for bodies that this process has received and not finished. Serves callers in the order of their arrival.
 * A single body is always accepted. Of several that arrive, the first can always grow, and so they do not all wait for
 * each other.
 */
export class BodyMemory {
  /** The size of the largest body that is ever accepted. */
  readonly largestBody: number;
  readonly #limitBytes: number;
  readonly #queuedBytes: () => number;
  readonly #waitMs: number;
  readonly #waiting: Waiting[] = [];
  readonly #arriving = new Set<ArrivingBody>();
  #reserved = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ limitBytes, queuedBytes = () => 0, waitMs = WAIT_MS }: BodyMemoryOptions) {
    this.largestBody = Math.floor(limitBytes / MEMORY_PER_BODY_BYTE);
    this.#limitBytes = limitBytes;
    this.#queuedBytes = queuedBytes;
    this.#waitMs = waitMs;
  }

  /**
   * Waits for memory, for a limited time. `undefined` when there is none. The reservation of a
   * body grows as it arrives: a client may announce much and send nothing.
   */
  async reserve(bodyBytes: number, body?: ArrivingBody): Promise<Release | undefined> {
    const bytes = bodyBytes * MEMORY_PER_BODY_BYTE;
    if (body) this.#arriving.add(body);
    const isSmall = bodyBytes <= SMALL_BYTES;
    const goesFirst = isSmall || this.#isFirst(body) || this.#waiting.length === 0;
    if (goesFirst && this.#hasRoom(bytes, body)) return this.#reserveNow(bytes, body);
    return await this.#wait(bytes, body);
  }

  /** Called once when a body has arrived, or will not. */
  ended(body: ArrivingBody): void {
    this.#arriving.delete(body);
    this.#admitWaiting();
  }

  #isFirst(body: ArrivingBody | undefined): boolean {
    return body !== undefined && body === this.#arriving.values().next().value;
  }

  /**
   * The memory that is kept free once these bytes are reserved, so that any body can grow to its end
   * when it is the first.
   */
  #kept(bytes: number, body: ArrivingBody | undefined): number {
    let most = 0;
    for (const one of this.#arriving)
      most = Math.max(most, one.rest * MEMORY_PER_BODY_BYTE - (one === body ? bytes : 0));
    return most;
  }

  #hasRoom(bytes: number, body: ArrivingBody | undefined): boolean {
    const isSmall = bytes <= SMALL_BYTES * MEMORY_PER_BODY_BYTE;
    const limit = this.#limitBytes * (isSmall ? 1 + SMALL_RESERVE : 1);
    const queued = this.#queuedBytes() * MEMORY_PER_QUEUED_BYTE;
    const free = limit - this.#reserved - queued - bytes;
    return free >= 0 && (isSmall || this.#isFirst(body) || free >= this.#kept(bytes, body));
  }

  #reserveNow(bytes: number, body: ArrivingBody | undefined): Release {
    this.#reserved += bytes;
    if (body) body.rest -= bytes / MEMORY_PER_BODY_BYTE;
    return () => {
      this.#reserved -= bytes;
      this.#admitWaiting();
    };
  }

  #admitWaiting(): void {
    for (;;) {
      const next = this.#waiting.find(({ body }) => this.#isFirst(body)) ?? this.#waiting[0];
      if (!next || !this.#hasRoom(next.bytes, next.body)) break;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      next.resolveWith(this.#reserveNow(next.bytes, next.body));
    }
    clearInterval(this.#timer);
    if (this.#waiting.length > 0)
      this.#timer = setInterval(() => this.#admitWaiting(), RECHECK_MS).unref();
  }

  #wait(bytes: number, body: ArrivingBody | undefined): Promise<Release | undefined> {
    return new Promise((resolve) => {
      const entry: Waiting = {
        bytes,
        body,
        resolveWith(release) {
          clearTimeout(timeout);
          resolve(release);
        },
      };
      const timeout = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        this.#admitWaiting();
        resolve(undefined);
      }, this.#waitMs);
      this.#waiting.push(entry);
      this.#admitWaiting();
    });
  }
}
