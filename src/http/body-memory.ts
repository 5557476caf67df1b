import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';

/** Memory set aside for what callers send and this process has not finished. */
export type BodyMemory = {
  /** Bytes of the largest body there is ever room for. */
  readonly largestBody: number;
  /** Waits a while for room; `undefined`: there is none. A body that announces no length is `grown`. */
  reserve(bytes: number): Promise<Hold | undefined>;
  /** Bytes reserved now. */
  readonly reservedBytes: () => number;
};

/** A part of the memory; given back once. */
export type Hold = { release(): void };

export type BodyMemoryOptions = {
  readonly limitBytes: number;
  /** Bytes of bodies that were taken and are kept until their work is done. */
  readonly keptBytes?: () => number;
  readonly waitMs?: number;
};

/** Memory that a body takes while it is read, checked, written as text and stored, for each byte. */
const BYTES_A_BYTE = 4;
/** Bytes in memory for each byte of a prompt that waits or runs. */
const BYTES_A_KEPT_BYTE = 2;
/** Memory the process needs without any body. */
const OWN_BYTES = 96 * 1024 * 1024;
/** Bodies up to here need no room of their own: there is a reserve for them. */
const SMALL_BYTES = 64 * 1024;
const SMALL_RESERVE = 1 / 8;
const WAIT_MS = 5_000;
/** Memory of prompts that end is given back without a word. */
const LOOK_AGAIN_MS = 100;

/** Memory a process may spend on bodies: most of its heap, or of the memory its container has. */
export function bodyMemoryBytes(): number {
  const constrained = process.constrainedMemory() || Infinity;
  const machine = Math.min(constrained, totalmem());
  const heap = Math.min(getHeapStatistics().heap_size_limit, machine * 0.75);
  return Math.max(32 * 1024 * 1024, (heap - OWN_BYTES) * 0.75);
}

type Waiting = { readonly bytes: number; readonly go: (hold: Hold | undefined) => void };

/** First come, first served; a body that alone is there always has room. */
export function createBodyMemory(options: BodyMemoryOptions): BodyMemory {
  const { limitBytes, keptBytes = () => 0, waitMs = WAIT_MS } = options;
  const waiting: Waiting[] = [];
  let reserved = 0;
  let timer: NodeJS.Timeout | undefined;

  function hasRoom(bytes: number): boolean {
    const room = bytes <= SMALL_BYTES * BYTES_A_BYTE ? 1 + SMALL_RESERVE : 1;
    const kept = keptBytes() * BYTES_A_KEPT_BYTE;
    return reserved + kept + bytes <= limitBytes * room;
  }

  function take(bytes: number): Hold {
    reserved += bytes;
    let isHeld = true;
    return {
      release() {
        if (!isHeld) return;
        isHeld = false;
        reserved -= bytes;
        admit();
      },
    };
  }

  function admit(): void {
    for (let [first] = waiting; first && hasRoom(first.bytes); [first] = waiting) {
      waiting.shift();
      first.go(take(first.bytes));
    }
    clearInterval(timer);
    if (waiting.length > 0) timer = setInterval(admit, LOOK_AGAIN_MS).unref();
  }

  function wait(bytes: number): Promise<Hold | undefined> {
    return new Promise((resolve) => {
      const entry: Waiting = {
        bytes,
        go(hold) {
          clearTimeout(late);
          resolve(hold);
        },
      };
      const late = setTimeout(() => {
        waiting.splice(waiting.indexOf(entry), 1);
        admit();
        resolve(undefined);
      }, waitMs);
      waiting.push(entry);
      admit();
    });
  }

  return {
    largestBody: Math.floor(limitBytes / BYTES_A_BYTE),
    reservedBytes: () => reserved,
    async reserve(bodyBytes) {
      const bytes = bodyBytes * BYTES_A_BYTE;
      const isSmall = bodyBytes <= SMALL_BYTES;
      if (hasRoom(bytes) && (isSmall || waiting.length === 0)) return take(bytes);
      return await wait(bytes);
    },
  };
}
