import type { Readable } from 'node:stream';
import type { ByteRange, SpooledFile } from '../protocol/job-api.ts';

/** Bytes that are stored, by their hash. */
export type StoredBlob = {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** When the bytes got their place. */
  readonly placedAtMs: number;
};

/** Bytes that were taken away and may have to come back. */
export type BlobAside = { readonly name: string; readonly hash: string; readonly sinceMs: number };

/**
 * The store of content-addressed bytes: a hash has all of its bytes or none, never a part of them and
 * never others. Drivers: a folder, and a bucket.
 *
 * Bytes may have no record between their arrival and `markRecorded`, and between `markUnrecorded` and
 * `remove`; a marker says so, and survives a crash. Bytes without a record and without a marker
 * may belong to another ledger and are never removed.
 */
export type Blobs = {
  /** Where worker threads read and write the bytes themselves; `undefined`: they ask this process. */
  readonly blobsDir: string | undefined;
  /** The path of the bytes on this machine; `undefined` where they have none. */
  pathOf(hash: string): string | undefined;
  /** Takes over a spooled file; its bytes are durable under their hash once this resolves. */
  moveIntoPlace(file: SpooledFile): Promise<void>;
  /** The same for bytes in memory, with more patience: a job waits for it. */
  put(hash: string, bytes: Uint8Array): Promise<void>;
  /** Makes bytes that worker threads have put into place survive a power cut, unless they are gone. */
  sync(hashes: readonly string[]): Promise<void>;
  /** True when bytes were put into place and nothing has removed them since; with the patience of a job. */
  isInPlace(hash: string): boolean | Promise<boolean>;
  /** The ledger has a record of these bytes. */
  markRecorded(hash: string): Promise<void>;
  /** Call before the last record of these bytes is removed; then call `remove` or `markRecorded`. */
  markUnrecorded(hash: string): Promise<void>;
  /** `undefined`: there are no such bytes. */
  sizeOf(hash: string): Promise<number | undefined>;
  /** The bytes, or a range of them; `undefined`: there are no such bytes. */
  open(hash: string, range?: ByteRange): Promise<Readable | undefined>;
  /** All bytes in memory, their hash compared, with the patience of a job. */
  read(hash: string): Promise<Uint8Array | undefined>;
  /** Copies the bytes to a new file on this machine; `false`: there are no such bytes. */
  copyTo(hash: string, path: string): Promise<boolean>;
  remove(hash: string): Promise<void>;
  /** Hashes with a marker, that is bytes which may have no record, and since when. */
  listUnrecorded(): AsyncIterable<{ readonly hash: string; readonly sinceMs: number }>;
  /** All bytes that are there. */
  list(): AsyncIterable<StoredBlob>;
  /** Takes bytes away under another name, which is returned; `undefined`: there are none. */
  setAside(hash: string): Promise<string | undefined>;
  /** Brings back what was taken away. */
  putBack(name: string): Promise<void>;
  /** Removes what was taken away. */
  removeAside(name: string): Promise<void>;
  listAside(): AsyncIterable<BlobAside>;
  /** Removes what uploads have left that broke off long ago. */
  removeAbandoned(): Promise<void>;
  /** A link that serves the bytes with these headers and needs no credentials, where there can be one. */
  linkTo?(
    this: void,
    hash: string,
    headers: { readonly contentType: string; readonly disposition: string },
  ): Promise<string>;
};
