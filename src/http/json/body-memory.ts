import { getHeapStatistics } from 'node:v8';
import { totalMemoryBytes } from '../../lib/memory.ts';

/** The memory for bodies that this process has received and not finished. */
export interface BodyMemory {
  /** The size of the largest body that is ever accepted. */
  readonly largestBody: number;
  /**
   * Waits for memory, for a limited time. `undefined` when there is none. The reservation of a
   * body without a length grows as it arrives.
   */
  reserve(bodyBytes: number): Promise<Release | undefined>;
}

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
  readonly resolveWith: (release: Release | undefined) => void;
};

/** Serves callers in the order of their arrival. A single body is always accepted. */
export function createBodyMemory(options: BodyMemoryOptions): BodyMemory {
  const { limitBytes, queuedBytes = () => 0, waitMs = WAIT_MS } = options;
  const waiting: Waiting[] = [];
  let reserved = 0;
  let timer: NodeJS.Timeout | undefined;

  function hasRoom(bytes: number): boolean {
    const room = bytes <= SMALL_BYTES * MEMORY_PER_BODY_BYTE ? 1 + SMALL_RESERVE : 1;
    const queued = queuedBytes() * MEMORY_PER_QUEUED_BYTE;
    return reserved + queued + bytes <= limitBytes * room;
  }

  function reserveNow(bytes: number): Release {
    reserved += bytes;
    return () => {
      reserved -= bytes;
      admitWaiting();
    };
  }

  function admitWaiting(): void {
    for (let [first] = waiting; first && hasRoom(first.bytes); [first] = waiting) {
      waiting.shift();
      first.resolveWith(reserveNow(first.bytes));
    }
    clearInterval(timer);
    if (waiting.length > 0) timer = setInterval(admitWaiting, RECHECK_MS).unref();
  }

  function wait(bytes: number): Promise<Release | undefined> {
    return new Promise((resolve) => {
      const entry: Waiting = {
        bytes,
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
    async reserve(bodyBytes) {
      const bytes = bodyBytes * MEMORY_PER_BODY_BYTE;
      const isSmall = bodyBytes <= SMALL_BYTES;
      if (hasRoom(bytes) && (isSmall || waiting.length === 0)) return reserveNow(bytes);
      return await wait(bytes);
    },
  };
}
