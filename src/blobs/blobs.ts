import type { Readable } from 'node:stream';
import type { ByteRange, SpooledFile } from '../protocol/job-api.ts';

/** Stored bytes, by their hash. */
export type StoredBlob = {
  readonly hash: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** When the bytes were put into place. */
  readonly placedAtMs: number;
};

/** Bytes that were set aside and may have to be put back. */
type BlobAside = { readonly name: string; readonly hash: string; readonly sinceMs: number };

/**
 * The store of content-addressed bytes. A hash has all of its bytes or none, never a part of them
 * and never others. Drivers: a folder, and a bucket.
 */
export type Blobs = BlobWrites & BlobMarkers & BlobReads & AsideBlobs;

export type BlobWrites = {
  /** Takes over a spooled file. Its bytes are durable under their hash when this resolves. */
  moveIntoPlace(file: SpooledFile): Promise<void>;
  /**
   * Takes over a spooled file. Retries for longer, since a job waits for it; its bytes are durable
   * after `sync`.
   */
  put(file: SpooledFile): Promise<void>;
  /** Makes bytes that were put into place survive a power cut, unless they are gone. */
  sync(hashes: readonly string[]): Promise<void>;
  remove(hash: string): Promise<void>;
  /** Removes the parts of uploads that were interrupted long ago. */
  removeAbandoned(): Promise<void>;
};

/**
 * Bytes may have no record between their arrival and `markRecorded`, and between `markUnrecorded`
 * and `remove`. A marker shows that, and survives a crash. Bytes without a record and without a
 * marker may belong to another ledger and are never removed.
 */
export type BlobMarkers = {
  /** Removes the marker: the ledger has a record of these bytes. */
  markRecorded(hash: string): Promise<void>;
  /**
   * Sets the marker. Call it before the last record of these bytes is removed; then call `remove`
   * or `markRecorded`.
   */
  markUnrecorded(hash: string): Promise<void>;
  /** Lists the hashes with a marker, which may have no record, and since when. */
  listUnrecorded(): AsyncIterable<{ readonly hash: string; readonly sinceMs: number }>;
};

export type BlobReads = {
  /** Returns the size; `undefined`: these bytes do not exist. */
  sizeOf(hash: string): Promise<number | undefined>;
  /** Opens the bytes, or a range of them; `undefined`: they do not exist. */
  open(hash: string, range?: ByteRange): Promise<Readable | undefined>;
  /** Reads all bytes into memory and compares their hash. Retries as long as `put`. */
  read(hash: string): Promise<Uint8Array | undefined>;
  /** Copies the bytes to a new file on this machine. `false`: they do not exist. */
  copyTo(hash: string, path: string): Promise<boolean>;
  /** Lists all bytes that exist. */
  list(): AsyncIterable<StoredBlob>;
  /**
   * Returns a link that serves the bytes with these headers and needs no credentials, if the store
   * has links.
   */
  linkTo?(
    this: void,
    hash: string,
    headers: { readonly contentType: string; readonly disposition: string },
  ): Promise<string>;
};

/** A removal in steps, for stores that several processes share. */
export type AsideBlobs = {
  /** Sets bytes aside under another name, which is returned. `undefined`: they do not exist. */
  setAside(hash: string): Promise<string | undefined>;
  /** Puts bytes back that were set aside. */
  putBack(name: string): Promise<void>;
  /** Removes bytes that were set aside. */
  removeAside(name: string): Promise<void>;
  listAside(): AsyncIterable<BlobAside>;
};
