/** Smaller chunks are copied together, since a chunk of one byte takes a hundred in memory. */
const SMALL_BYTES = 16 * 1024;
const BLOCK_BYTES = 64 * 1024;

/**
 * The bytes of a body in the order of their arrival. They are given out once, from the first to the
 * last.
 */
export class BodyBytes {
  #chunks: Buffer[] = [];
  readonly #blockBytes: number;
  #block: Buffer | undefined;
  #blockUsed = 0;
  /** Offset of the first chunk that is still held. */
  #offset = 0;
  #first = 0;

  /** `announced`: the maximum number of bytes, or an estimate when none was stated. */
  constructor(announced: number) {
    this.#blockBytes = Math.max(1, Math.min(announced, BLOCK_BYTES));
  }

  add(chunk: Buffer): void {
    if (chunk.length >= SMALL_BYTES) {
      this.#closeBlock();
      this.#chunks.push(chunk);
      return;
    }
    let rest = chunk;
    while (rest.length > 0) {
      this.#block ??= Buffer.allocUnsafeSlow(this.#blockBytes);
      const copied = rest.copy(this.#block, this.#blockUsed);
      this.#blockUsed += copied;
      rest = rest.subarray(copied);
      if (this.#blockUsed === this.#blockBytes) this.#closeBlock();
    }
  }

  /** Returns the bytes from `start` to `end`. Earlier bytes are released. */
  take(start: number, end: number): Buffer {
    this.#closeBlock();
    this.#dropBefore(start);
    const parts: Buffer[] = [];
    let at = this.#offset;
    for (let i = this.#first; i < this.#chunks.length && at < end; i++) {
      const chunk = this.#chunks[i] ?? EMPTY;
      parts.push(chunk.subarray(Math.max(0, start - at), end - at));
      at += chunk.length;
    }
    return parts.length === 1 ? (parts[0] ?? EMPTY) : Buffer.concat(parts);
  }

  clear(): void {
    this.#chunks = [];
    this.#block = undefined;
  }

  #dropBefore(start: number): void {
    for (; this.#first < this.#chunks.length; this.#first++) {
      const length = this.#chunks[this.#first]?.length ?? 0;
      if (this.#offset + length > start) return;
      this.#offset += length;
      this.#chunks[this.#first] = EMPTY;
    }
  }

  #closeBlock(): void {
    if (this.#block) this.#chunks.push(this.#block.subarray(0, this.#blockUsed));
    this.#block = undefined;
    this.#blockUsed = 0;
  }
}

const EMPTY = Buffer.alloc(0);
