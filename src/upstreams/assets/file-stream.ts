import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';

const CHUNK_BYTES = 1024 * 1024;

/**
 * The receiver of a stream. `writableLength` is 0 when it has passed on everything it was given.
 */
type Receiver = { readonly writableLength: number };

/**
 * Streams the bytes of an open file from `start` to `end`, inclusive. Closes the file at the end.
 */
export class FileStream extends Readable {
  readonly #handle: FileHandle;
  #position: number;
  readonly #end: number;
  #receiver: Receiver | undefined;
  /** The buffers of the last chunk and of the chunk before. */
  #last: Buffer | undefined;
  #beforeLast: Buffer | undefined;

  constructor(
    handle: FileHandle,
    { start, end }: { readonly start: number; readonly end: number },
  ) {
    super({ highWaterMark: CHUNK_BYTES });
    this.#handle = handle;
    this.#position = start;
    this.#end = end;
  }

  /**
   * From now on a buffer is used again when `receiver` has passed its bytes on: to allocate memory
   * costs more than to read the bytes. Only for a receiver that gets the chunks themselves.
   */
  reuseBuffersFor(receiver: Receiver): void {
    this.#receiver = receiver;
  }

  override _read(): void {
    const length = Math.min(CHUNK_BYTES, this.#end + 1 - this.#position);
    if (length <= 0) return void this.push(null);
    const buffer = this.#nextBuffer(length);
    this.#handle.read(buffer, 0, length, this.#position).then(
      ({ bytesRead }) => {
        this.#position += bytesRead;
        this.push(bytesRead === 0 ? null : buffer.subarray(0, bytesRead));
      },
      (error: Error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#handle.close().then(
      () => done(error),
      (failed: Error) => done(error ?? failed),
    );
  }

  #nextBuffer(length: number): Buffer {
    const used = this.#beforeLast;
    // At most the last chunk waits in this stream; all others were given to the receiver.
    const isFree =
      this.#receiver?.writableLength === 0 && this.readableLength <= (this.#last?.length ?? 0);
    const buffer = isFree && used && used.length >= length ? used : Buffer.allocUnsafeSlow(length);
    [this.#beforeLast, this.#last] = [this.#last, buffer];
    return buffer;
  }
}
