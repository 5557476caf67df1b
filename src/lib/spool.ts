import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable, Writable, finished as whenFinished } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { FileDurability } from './durability.ts';
import { type Hasher, createHasher } from './hash.ts';
import type { GrowingFile, SpooledFile } from '../protocol/job-api.ts';

/** Why bytes were refused: too many, a full disk or another disk fault, or an incomplete body. */
type SpoolRefusal = {
  readonly ok: false;
  readonly status: 400 | 413 | 415 | 507;
  readonly message: string;
  /** The fault of the disk. */
  readonly cause?: unknown;
};

export type SpoolResult = { readonly ok: true; readonly value: SpooledFile } | SpoolRefusal;

const WRITE_NEW =
  constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | (constants.O_NOFOLLOW ?? 0);
/** The bytes that may wait for a write. */
const BUFFERED_BYTES = 512 * 1024;
/** A smaller file has arrived before a reader could have begun. */
const FOLLOWED_FROM_BYTES = 1024 * 1024;
/** The bytes that are hashed and written at a time: a whole file in one chunk must not block the event loop. */
const SLICE_BYTES = 1024 * 1024;
const FULL_DISK_CODES = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

type SpoolOptions = {
  readonly dir: string;
  readonly maxBytes: number;
  /** A file that is only forwarded need not reach the disk. */
  readonly durability?: FileDurability | undefined;
  /**
   * Called when more than a megabyte has arrived, with a file that can be read while it is
   * written.
   */
  readonly follow?: ((file: GrowingFile) => void) | undefined;
};

/**
 * Writes a stream to a new file below `dir` and hashes it meanwhile. Memory stays constant, and a
 * failure leaves no file. A refused source is left open and paused: its owner drains or closes it.
 */
export async function spoolStream(source: Readable, options: SpoolOptions): Promise<SpoolResult> {
  const path = join(options.dir, randomUUID());
  const hasher = createHasher();
  const growing = new GrowingFileWriter(path);
  try {
    await pipeInto(source, createSink(options, hasher, growing));
    growing.end('complete');
    return { ok: true, value: { path, sizeBytes: growing.sizeBytes, hash: hasher.digest() } };
  } catch (error) {
    growing.end(error as Error);
    // A file that cannot be removed now is removed at the next start. The first error matters more.
    await rm(path, { force: true }).catch(() => {});
    return refusalOf(error, options.maxBytes);
  } finally {
    hasher.discard();
  }
}

/** Writes bytes from memory to a spooled file. */
export async function spoolBytes(
  bytes: Uint8Array,
  options: { readonly dir: string },
): Promise<SpooledFile> {
  const source = Readable.from([bytes], { objectMode: false });
  const spooled = await spoolStream(source, { dir: options.dir, maxBytes: bytes.length });
  if (!spooled.ok) throw new Error(spooled.message, { cause: spooled.cause });
  return spooled.value;
}

/** Returns the text that the v1 server sends for a body over the limit. */
export function tooLargeText(maxBytes: number): string {
  return `Maximum request body size ${maxBytes} exceeded.`;
}

/** Thrown when the sender has disconnected before the end. */
class SourceEndedEarly extends Error {
  override readonly name = 'CutOff';
}

/**
 * Works like `pipeline`, but a failing sink leaves its source open: to destroy a request would
 * close the connection on which the refusal must be sent.
 */
export async function pipeInto(source: Readable, sink: Writable): Promise<void> {
  whenFinished(source, { writable: false }, (cause) => {
    if (cause) sink.destroy(new SourceEndedEarly('the source ended early', { cause }));
  });
  source.pipe(sink);
  await finished(sink);
}

/** Tells readers of a file how far it is written. */
class GrowingFileWriter {
  readonly file: GrowingFile;
  /** The bytes that are written and can be read. */
  sizeBytes = 0;
  readonly #changes = new EventEmitter();
  #end: 'none' | 'complete' | Error = 'none';

  constructor(path: string) {
    this.file = { path, sizeBeyond: (knownBytes) => this.#sizeBeyond(knownBytes) };
  }

  add(bytes: number): void {
    this.sizeBytes += bytes;
    this.#changes.emit('change');
  }

  /** Says that all bytes are written, or that the rest will never come. */
  end(how: 'complete' | Error): void {
    this.#end = how;
    this.#changes.emit('change');
  }

  async #sizeBeyond(knownBytes: number): Promise<number> {
    while (this.#end === 'none' && this.sizeBytes <= knownBytes)
      await once(this.#changes, 'change');
    if (this.#end instanceof Error) throw this.#end;
    return this.sizeBytes;
  }
}

class TooManyBytes extends Error {}

/** Writes chunks to a file, and hashes them. Chunks that arrive during a write are written together. */
function createSink(options: SpoolOptions, hasher: Hasher, growing: GrowingFileWriter): Writable {
  const { maxBytes, durability = 'fsync' } = options;
  let handle: FileHandle | undefined;
  let { follow } = options;

  async function write(bytes: Buffer): Promise<void> {
    if (growing.sizeBytes + bytes.length > maxBytes) throw new TooManyBytes();
    for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
      const slice = bytes.subarray(at, at + SLICE_BYTES);
      const written = handle?.writeFile(slice);
      hasher.update(slice);
      await written;
      growing.add(slice.length);
    }
    if (growing.sizeBytes < FOLLOWED_FROM_BYTES) return;
    follow?.(growing.file);
    follow = undefined;
  }

  return new Writable({
    highWaterMark: BUFFERED_BYTES,
    construct: (done) =>
      callDoneAfter(
        openNew(growing.file.path).then((opened) => void (handle = opened)),
        done,
      ),
    write: (chunk: Buffer, _encoding, done) => callDoneAfter(write(chunk), done),
    writev: (chunks, done) =>
      callDoneAfter(write(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer))), done),
    final: (done) => callDoneAfter(durability === 'fsync' ? handle?.sync() : undefined, done),
    destroy: (error, done) => callDoneAfter(handle?.close(), (failed) => done(error ?? failed)),
  });
}

function callDoneAfter(
  work: Promise<void> | undefined,
  done: (error?: Error | null) => void,
): void {
  Promise.resolve(work).then(() => done(null), done);
}

async function openNew(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return open(path, WRITE_NEW, 0o600);
}

function refusalOf(error: unknown, maxBytes: number): SpoolRefusal {
  if (error instanceof TooManyBytes)
    return { ok: false, status: 413, message: tooLargeText(maxBytes) };
  if (error instanceof SourceEndedEarly) {
    return { ok: false, status: 400, message: 'The upload was cut off.' };
  }
  const { code = '', syscall } = error as NodeJS.ErrnoException;
  // Several files of one form are spooled at a time, so a disk fault has to be a value.
  if (syscall === undefined) throw error;
  const full = 'There is no room left to keep this file.';
  const message = FULL_DISK_CODES.has(code) ? full : `The file could not be stored (${code}).`;
  return { ok: false, status: 507, message, cause: error };
}
