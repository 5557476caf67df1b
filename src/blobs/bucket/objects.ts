import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { GetObjectCommand, type S3 } from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import type { BucketSource } from '../../config/files.ts';
import { createSemaphore } from '../../lib/concurrency.ts';
import { readAtMost } from '../../lib/read-at-most.ts';
import type { ByteRange, SpooledFile } from '../../protocol/job-api.ts';
import { resumedBytes } from '../resumed-bytes.ts';
import { type BucketCall, SHORT_CALL } from './client.ts';
import { BucketError } from './errors.ts';

export type TransferSizes = {
  /** Larger objects are uploaded in parts of this size. A part needs the same amount of memory. */
  readonly partBytes: number;
  /** Larger objects are copied through this process: S3 copies at most 5 GiB with one call. */
  readonly copyBytes: number;
};

type ObjectFacts = { readonly sizeBytes: number; readonly modifiedAtMs: number };

const TRANSFER_SIZES: TransferSizes = { partBytes: 8 * 2 ** 20, copyBytes: 5 * 2 ** 30 };
/** These two limit the memory for uploads of files. */
const PARTS_AT_A_TIME = 2;
const FILES_AT_A_TIME = 4;
/** How often the rest of an object is requested while no more of its bytes arrive. */
const MAX_RESUMES = 5;
/** The contract says "at most an hour": an old link found in a history or a log opens nothing. */
const LINK_LIFETIME_S = 60 * 60;

/** The objects of one bucket, by their keys below its prefix. */
export class Objects {
  readonly #s3: S3;
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #call: BucketCall;
  readonly #sizes: TransferSizes;
  readonly #withFile = createSemaphore(FILES_AT_A_TIME);

  constructor(s3: S3, source: BucketSource, call: BucketCall, sizes = TRANSFER_SIZES) {
    this.#s3 = s3;
    this.#bucket = source.bucket;
    this.#prefix = source.prefix;
    this.#call = call;
    this.#sizes = sizes;
  }

  /** Returns the size and the time of an object; `undefined` when it does not exist. */
  async stat(key: string): Promise<ObjectFacts | undefined> {
    const found = await this.#find('HeadObject', () =>
      this.#s3.headObject(this.#at(key), SHORT_CALL),
    );
    return found && factsOf(found.ContentLength, found.LastModified);
  }

  /** Puts a small object. With `onlyNew`, `false` means that another object exists. */
  async put(key: string, body: Uint8Array, { onlyNew = false } = {}): Promise<boolean> {
    const input = { ...this.#at(key), Body: body, ...(onlyNew && { IfNoneMatch: '*' }) };
    try {
      await this.#call('PutObject', () => this.#s3.putObject(input));
      return true;
    } catch (error) {
      if (!(error instanceof BucketError && error.isConflict)) throw error;
      const stored = error.isRepeated ? await this.open(key) : undefined;
      return (stored && (await readAtMost(body.length, stored)))?.equals(body) === true;
    }
  }

  /** Uploads a file of any length. The object exists completely or not at all. */
  async putFile(key: string, file: SpooledFile): Promise<void> {
    await this.#withFile(() => this.#upload(key, createReadStream(file.path), file.sizeBytes));
  }

  /** Copies an object. Returns false when it does not exist. */
  async copy(from: string, to: string): Promise<boolean> {
    const { sizeBytes = 0 } = (await this.stat(from)) ?? {};
    if (sizeBytes > this.#sizes.copyBytes) {
      const bytes = await this.open(from);
      if (bytes) await this.#upload(to, bytes, sizeBytes);
      return bytes !== undefined;
    }
    const source = `${this.#bucket}/${this.#prefix}${from}`;
    const CopySource = source.split('/').map(encodeURIComponent).join('/');
    const copied = await this.#find('CopyObject', () =>
      this.#s3.copyObject({ ...this.#at(to), CopySource }),
    );
    return copied !== undefined;
  }

  async remove(key: string): Promise<void> {
    await this.#find('DeleteObject', () => this.#s3.deleteObject(this.#at(key), SHORT_CALL));
  }

  /** Returns a small object as text. */
  async text(key: string): Promise<string | undefined> {
    const stream = await this.open(key);
    return stream && (await text(stream));
  }

  /** Opens an object, or a range of it. An interrupted read continues at the same byte. */
  async open(key: string, range?: ByteRange): Promise<Readable | undefined> {
    const { start, end } = range ?? { start: 0, end: undefined };
    const first = await this.#get(key, start, end);
    if (first === undefined) return undefined;
    const { body, sizeBytes, etag } = first;
    let reached = start;
    let resumes = 0;
    const reopen = async (at: number): Promise<Readable> => {
      // The connection of a client that pauses ends each time: only resumes without progress count.
      resumes = at > reached ? 1 : resumes + 1;
      reached = at;
      const mayResume = resumes <= MAX_RESUMES;
      const rest = mayResume ? await this.#get(key, at, end, etag) : undefined;
      if (rest) return rest.body;
      throw new BucketError('an object broke off while it was read');
    };
    const stream = resumedBytes(body, { start, end: start + sizeBytes - 1, reopen });
    // A generator that never started releases nothing: an unread answer would keep its connection.
    return stream.once('close', () => body.destroy());
  }

  /** Lists all objects below a folder. */
  async *list(folder: string): AsyncIterable<ObjectFacts & { readonly key: string }> {
    const wanted = { Bucket: this.#bucket, Prefix: this.#prefix + folder };
    for (let token: string | undefined, isFirst = true; isFirst || token; isFirst = false) {
      const input = { ...wanted, ContinuationToken: token };
      const page = await this.#call('ListObjectsV2', () =>
        this.#s3.listObjectsV2(input, SHORT_CALL),
      );
      for (const { Key = '', Size, LastModified } of page.Contents ?? [])
        yield { key: Key.slice(this.#prefix.length), ...factsOf(Size, LastModified) };
      token = page.NextContinuationToken;
    }
  }

  /** Aborts uploads in parts that began before a time: S3 keeps their parts until then. */
  async abortUploads(beforeMs: number): Promise<void> {
    const place = { Bucket: this.#bucket, Prefix: this.#prefix };
    const { Uploads = [] } = await this.#call('ListMultipartUploads', () =>
      this.#s3.listMultipartUploads(place, SHORT_CALL),
    );
    for (const { Key, UploadId, Initiated = new Date() } of Uploads) {
      if (Initiated.getTime() >= beforeMs) continue;
      const upload = { Bucket: this.#bucket, Key, UploadId };
      await this.#find('AbortMultipartUpload', () =>
        this.#s3.abortMultipartUpload(upload, SHORT_CALL),
      );
    }
  }

  /** Returns a link that callers may open without credentials. */
  async link(
    key: string,
    { contentType, disposition }: { readonly contentType: string; readonly disposition: string },
  ): Promise<string> {
    const command = new GetObjectCommand({
      ...this.#at(key),
      ResponseContentType: contentType,
      ResponseContentDisposition: disposition,
      ResponseCacheControl: 'private, no-cache',
    });
    const lifetime = { expiresIn: LINK_LIFETIME_S };
    return await this.#call('GetObject', () => getSignedUrl(this.#s3, command, lifetime));
  }

  #at(key: string): { Bucket: string; Key: string } {
    return { Bucket: this.#bucket, Key: this.#prefix + key };
  }

  /** Makes a call about an object or an upload. Returns `undefined` when it does not exist. */
  async #find<Result>(operation: string, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await this.#call(operation, work);
    } catch (error) {
      if (error instanceof BucketError && error.isAbsence) return undefined;
      throw error;
    }
  }

  async #upload(key: string, body: Readable, sizeBytes: number): Promise<void> {
    const upload = new Upload({
      client: this.#s3,
      params: { ...this.#at(key), Body: body },
      partSize: this.#sizes.partBytes,
      queueSize: PARTS_AT_A_TIME,
    });
    try {
      const isDone = await this.#find('PutObject', () => upload.done());
      // An upload whose completion had its answer lost is gone, and its object exists.
      if (isDone || (await this.stat(key))?.sizeBytes === sizeBytes) return;
      throw new BucketError('an upload was gone before it was complete');
    } finally {
      body.destroy();
    }
  }

  /** Opens a part of an object. `end` is inclusive; without it the part ends with the object. */
  async #get(
    key: string,
    start: number,
    end?: number,
    etag?: string,
  ): Promise<{ body: Readable; sizeBytes: number; etag: string | undefined } | undefined> {
    const isWhole = start === 0 && end === undefined;
    const Range = isWhole ? undefined : `bytes=${start}-${end ?? ''}`;
    const found = await this.#find('GetObject', () =>
      this.#s3.getObject({ ...this.#at(key), Range, IfMatch: etag }, SHORT_CALL),
    );
    if (found === undefined) return undefined;
    const body = found.Body as Readable;
    // The reader of a body gets its error. A body without a reader must not end the process.
    body.on('error', () => {});
    return { body, sizeBytes: found.ContentLength ?? 0, etag: found.ETag };
  }
}

function factsOf(sizeBytes = 0, modified?: Date): ObjectFacts {
  return { sizeBytes, modifiedAtMs: modified?.getTime() ?? 0 };
}
