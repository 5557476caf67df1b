import { getHeapStatistics } from 'node:v8';
import { totalMemoryBytes } from '../../lib/memory.ts';

/** The memory for bodies that this process has received and not finished. */
export interface BodyMemory {
  /** The size of the largest body that is ever accepted. */
  readonly largestBody: number;
  /**
   * Waits for memory, for a limited time. `undefined` when there is none. The reservation of a
   * body grows as it arrives: a client may announce much and send nothing.
   */
  reserve(bodyBytes: number, body?: ArrivingBody): Promise<Release | undefined>;
  /** Called once when a body has arrived, or will not. */
  ended(body: ArrivingBody): void;
}

/** A body that has not arrived as a whole. */
export type ArrivingBody = {
  /** The announced bytes for which there is no reservation. */
  rest: number;
};

/** Releases a part of the memory. Called once. */
export type Release = () => void;

export type BodyMemoryOptions = {
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
 * Serves callers in the order of their arrival. A single body is always accepted. Of several that
 * arrive, the first can always grow, and so they do not all wait for each other.
 */
export function createBodyMemory(options: BodyMemoryOptions): BodyMemory {
  const { limitBytes, queuedBytes = () => 0, waitMs = WAIT_MS } = options;
  const waiting: Waiting[] = [];
  const arriving = new Set<ArrivingBody>();
  let reserved = 0;
  let timer: NodeJS.Timeout | undefined;

  const isFirst = (body: ArrivingBody | undefined): boolean =>
    body !== undefined && body === arriving.values().next().value;

  /**
   * The memory that is kept free once these bytes are reserved, so that any body can grow to its end
   * when it is the first.
   */
  function kept(bytes: number, body: ArrivingBody | undefined): number {
    let most = 0;
    for (const one of arriving)
      most = Math.max(most, one.rest * MEMORY_PER_BODY_BYTE - (one === body ? bytes : 0));
    return most;
  }

  function hasRoom(bytes: number, body: ArrivingBody | undefined): boolean {
    const isSmall = bytes <= SMALL_BYTES * MEMORY_PER_BODY_BYTE;
    const queued = queuedBytes() * MEMORY_PER_QUEUED_BYTE;
    const free = limitBytes * (isSmall ? 1 + SMALL_RESERVE : 1) - reserved - queued - bytes;
    return free >= 0 && (isSmall || isFirst(body) || free >= kept(bytes, body));
  }

  function reserveNow(bytes: number, body: ArrivingBody | undefined): Release {
    reserved += bytes;
    if (body) body.rest -= bytes / MEMORY_PER_BODY_BYTE;
    return () => {
      reserved -= bytes;
      admitWaiting();
    };
  }

  function admitWaiting(): void {
    for (;;) {
      const next = waiting.find(({ body }) => isFirst(body)) ?? waiting[0];
      if (!next || !hasRoom(next.bytes, next.body)) break;
      waiting.splice(waiting.indexOf(next), 1);
      next.resolveWith(reserveNow(next.bytes, next.body));
    }
    clearInterval(timer);
    if (waiting.length > 0) timer = setInterval(admitWaiting, RECHECK_MS).unref();
  }

  function wait(bytes: number, body: ArrivingBody | undefined): Promise<Release | undefined> {
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
        waiting.splice(waiting.indexOf(entry), 1);
        admitWaiting();
        resolve(undefined);
      }, waitMs);
      waiting.push(entry);
      admitWaiting();
    });
  }

  return {
    largestBody: Math.floor(limitBytes / MEMORY_PER_BODY_BYTE),
    async reserve(bodyBytes, body) {
      const bytes = bodyBytes * MEMORY_PER_BODY_BYTE;
      if (body) arriving.add(body);
      const goesFirst = bodyBytes <= SMALL_BYTES || isFirst(body) || waiting.length === 0;
      if (goesFirst && hasRoom(bytes, body)) return reserveNow(bytes, body);
      return await wait(bytes, body);
    },
    ended(body) {
      arriving.delete(body);
      admitWaiting();
    },
  };
}
