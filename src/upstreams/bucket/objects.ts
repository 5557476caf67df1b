import { type FileHandle, open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { createSemaphore, forEachConcurrently } from '../../lib/concurrency.ts';
import { readAtMost } from '../../lib/read-at-most.ts';
import type { ByteRange } from '../../protocol/job-api.ts';
import type { BucketCall, BucketClient } from './client.ts';
import { openObject } from './read-object.ts';
import { BucketError } from './errors.ts';
import { escapedXml, textOf, textsOf } from './xml.ts';

/** An object as a listing shows it. */
export type ListedObject = {
  readonly key: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
};

/** A part of an upload. Parts are numbered from 1. */
export type UploadedPart = { readonly number: number; readonly etag: string };

/**
 * The objects of one bucket: complete uploads and copies, and reads that survive a broken
 * connection.
 */
export type Objects = ReturnType<typeof createObjects>;

export type TransferSizes = {
  /** Larger objects are uploaded in parts of this size. A part needs the same amount of memory. */
  readonly partBytes: number;
  /** Larger objects are copied in parts of this size. S3 copies at most 5 GiB at a time. */
  readonly copyPartBytes: number;
};

export const TRANSFER_SIZES: TransferSizes = {
  partBytes: 8 * 2 ** 20,
  copyPartBytes: 256 * 2 ** 20,
};

/** The maximum number of parts in memory at a time, for all uploads. */
const MAX_PARTS_IN_MEMORY = 4;
const COPIES_AT_A_TIME = 4;

/** The options of a call that say how long it is repeated. */
export type Patience = Pick<BucketCall, 'retryForMs'>;

/** Creates the objects of a bucket over its client. */
export function createObjects(client: BucketClient, sizes: TransferSizes) {
  const { partBytes, copyPartBytes } = sizes;
  const inMemory = createSemaphore(MAX_PARTS_IN_MEMORY);

  async function stat(
    key: string,
    patience?: Patience,
  ): Promise<Omit<ListedObject, 'key'> | undefined> {
    const call = { method: 'HEAD', key, accept: [404], ...patience } as const;
    const { status, headers } = await client.done(call);
    if (status === 404) return undefined;
    const modifiedAtMs = Date.parse(String(headers['last-modified']));
    return { sizeBytes: Number(headers['content-length']), modifiedAtMs };
  }

  /** Returns the size of an object; `undefined` when it does not exist. */
  const head = async (key: string, patience?: Patience): Promise<number | undefined> =>
    (await stat(key, patience))?.sizeBytes;

  async function startParts(key: string, patience?: Patience): Promise<string> {
    const query = { uploads: '' };
    const xml = await client.text({ method: 'POST', key, query, ...patience });
    const uploadId = textOf(xml, 'UploadId');
    if (uploadId === undefined) throw new BucketError('the bucket began no upload', {});
    return uploadId;
  }

  /** Completes an upload. A retry whose first answer was lost finds it completed. */
  async function completeParts(
    { key, uploadId, sizeBytes }: PartsUpload & { readonly sizeBytes: number },
    parts: readonly UploadedPart[],
    patience?: Patience,
  ): Promise<void> {
    const items = parts
      .toSorted((a, b) => a.number - b.number)
      .map(
        ({ number, etag }) =>
          `<Part><PartNumber>${number}</PartNumber><ETag>${escapedXml(etag)}</ETag></Part>`,
      );
    const body = Buffer.from(
      `<CompleteMultipartUpload>${items.join('')}</CompleteMultipartUpload>`,
    );
    const call = { method: 'POST', key, query: { uploadId }, body, ...patience } as const;
    const reply = await client.send({ ...call, accept: [404] });
    const text = await reply.body.text();
    if (reply.status !== 404 && textOf(text, 'Error') === undefined) return;
    if ((await head(key)) !== sizeBytes) throw new BucketError(failureText(text), {});
  }

  /**
   * Aborts an upload. S3 keeps the parts of an unfinished upload until it is told to remove them.
   */
  async function abortParts({ key, uploadId }: PartsUpload): Promise<void> {
    await client.done({ method: 'DELETE', key, query: { uploadId }, accept: [404] });
  }

  async function putPart(
    upload: PartsUpload,
    { number, body, ...patience }: { number: number; body: Uint8Array } & Patience,
  ): Promise<UploadedPart> {
    const { key, uploadId } = upload;
    const query = { partNumber: String(number), uploadId };
    const reply = await client.done({ method: 'PUT', key, query, body, ...patience });
    return { number, etag: String(reply.headers['etag']) };
  }

  async function inParts(
    { key, sizeBytes, partSize }: { key: string; sizeBytes: number; partSize: number },
    put: (upload: PartsUpload, part: ByteRange & { number: number }) => Promise<UploadedPart>,
    patience?: Patience,
  ): Promise<void> {
    const upload = { key, uploadId: await startParts(key, patience) };
    const done: UploadedPart[] = [];
    try {
      await forEachConcurrently(COPIES_AT_A_TIME, rangesOf(sizeBytes, partSize), async (part) => {
        done.push(await put(upload, part));
      });
      await completeParts({ ...upload, sizeBytes }, done, patience);
    } catch (error) {
      await abortParts(upload).catch(() => {});
      throw error;
    }
  }

  async function readPart(handle: FileHandle, { start, end }: ByteRange): Promise<Buffer> {
    const buffer = Buffer.allocUnsafeSlow(end - start + 1);
    for (let at = 0; at < buffer.length;) {
      const { bytesRead } = await handle.read(buffer, at, buffer.length - at, start + at);
      if (bytesRead === 0) throw new Error('a file became shorter while it was read');
      at += bytesRead;
    }
    return buffer;
  }

  return {
    stat,
    head,
    startParts,
    completeParts,
    abortParts,
    /** Uploads a part of a growing file. A limited number of parts is in memory at a time. */
    putFilePart: (upload: PartsUpload, handle: FileHandle, part: ByteRange & { number: number }) =>
      inMemory(async () =>
        putPart(upload, { number: part.number, body: await readPart(handle, part) }),
      ),
    /** Puts a small object. With `onlyNew`, `false` (412) means that another object exists. */
    async put(
      key: string,
      body: Uint8Array,
      { onlyNew = false, ...patience }: Patience & { readonly onlyNew?: boolean } = {},
    ): Promise<boolean> {
      const headers = onlyNew ? { 'if-none-match': '*' } : {};
      const accept = onlyNew ? [412] : [];
      const call = { method: 'PUT', key, body, headers, accept, ...patience } as const;
      const { status, isRepeated } = await client.done(call);
      if (status < 300 || !isRepeated) return status < 300;
      const stored = await openObject(client, key, patience);
      return (stored && (await readAtMost(body.length, stored)))?.equals(body) === true;
    },
    /** Uploads bytes of any length. The object exists completely or not at all. */
    async putBytes(key: string, bytes: Uint8Array, patience?: Patience): Promise<void> {
      if (bytes.length <= partBytes * 2)
        return void (await client.done({ method: 'PUT', key, body: bytes, ...patience }));
      await inParts(
        { key, sizeBytes: bytes.length, partSize: partBytes },
        (upload, { number, start, end }) =>
          putPart(upload, { number, body: bytes.subarray(start, end + 1), ...patience }),
        patience,
      );
    },
    async putFile(key: string, file: { path: string; sizeBytes: number }): Promise<void> {
      const { sizeBytes } = file;
      const handle = await open(file.path, 'r');
      try {
        if (sizeBytes <= partBytes) {
          return await inMemory(async () => {
            const body = await readPart(handle, { start: 0, end: sizeBytes - 1 });
            await client.done({ method: 'PUT', key, body });
          });
        }
        await inParts({ key, sizeBytes, partSize: partBytes }, (upload, { number, ...range }) =>
          inMemory(async () => putPart(upload, { number, body: await readPart(handle, range) })),
        );
      } finally {
        await handle.close();
      }
    },
    /**
     * Copies an object within the bucket, whose server moves the bytes. Returns false when the object does not exist.
     */
    async copy(from: string, to: string): Promise<boolean> {
      const sizeBytes = await head(from);
      if (sizeBytes === undefined) return false;
      const source = { 'x-amz-copy-source': client.copySource(from) };
      if (sizeBytes <= copyPartBytes) {
        const reply = await client.send({
          method: 'PUT',
          key: to,
          headers: source,
          accept: [404],
        });
        const text = await reply.body.text();
        if (reply.status === 404) return false;
        // S3 may answer 200 before it knows the result.
        if (textOf(text, 'Error') === undefined) return true;
        throw new BucketError(failureText(text), {});
      }
      await inParts(
        { key: to, sizeBytes, partSize: copyPartBytes },
        async ({ key, uploadId }, { number, start, end }) => {
          const query = { partNumber: String(number), uploadId };
          const headers = { ...source, 'x-amz-copy-source-range': `bytes=${start}-${end}` };
          const xml = await client.text({ method: 'PUT', key, query, headers });
          const etag = textOf(xml, 'ETag');
          if (etag === undefined) throw new BucketError(failureText(xml), {});
          return { number, etag };
        },
      );
      return true;
    },
    async remove(key: string): Promise<void> {
      await client.done({ method: 'DELETE', key, accept: [404] });
    },
    /** Returns a small object as text. */
    async text(key: string): Promise<string | undefined> {
      const reply = await client.send({ method: 'GET', key, accept: [404] });
      return reply.status === 404 ? undefined : await reply.body.text();
    },
    /** Opens an object, or a range of it. An interrupted read continues at the same byte. */
    async open(key: string, range?: ByteRange, patience?: Patience): Promise<Readable | undefined> {
      return await openObject(client, key, { ...range, ...patience });
    },
    /** Lists all objects below a prefix. */
    async *list(prefix: string): AsyncIterable<ListedObject> {
      for (let token: string | undefined; ;) {
        const query = {
          'list-type': '2',
          prefix: client.fullKey(prefix),
          'encoding-type': 'url',
          ...(token !== undefined && { 'continuation-token': token }),
        };
        const xml = await client.text({ method: 'GET', query });
        for (const item of textsOf(xml, 'Contents')) yield listedObject(client, item);
        token =
          textOf(xml, 'IsTruncated') === 'true' ? textOf(xml, 'NextContinuationToken') : undefined;
        if (token === undefined) return;
      }
    },
    /** Lists the uploads in parts that are neither completed nor aborted. */
    async unfinished(prefix: string): Promise<readonly (PartsUpload & { sinceMs: number })[]> {
      const query = { uploads: '', prefix: client.fullKey(prefix) };
      const xml = await client.text({ method: 'GET', query });
      return textsOf(xml, 'Upload').map((item) => ({
        key: client.ownKey(textOf(item, 'Key') ?? ''),
        uploadId: textOf(item, 'UploadId') ?? '',
        sinceMs: Date.parse(textOf(item, 'Initiated') ?? ''),
      }));
    },
  };
}

/** An upload in parts. */
export type PartsUpload = { readonly key: string; readonly uploadId: string };

function* rangesOf(
  sizeBytes: number,
  partBytes: number,
): Generator<ByteRange & { readonly number: number }> {
  for (let start = 0; start < sizeBytes; start += partBytes)
    yield {
      number: start / partBytes + 1,
      start,
      end: Math.min(start + partBytes, sizeBytes) - 1,
    };
}

function listedObject(client: BucketClient, xml: string): ListedObject {
  return {
    key: client.ownKey(decodeURIComponent((textOf(xml, 'Key') ?? '').replaceAll('+', ' '))),
    sizeBytes: Number(textOf(xml, 'Size')),
    modifiedAtMs: Date.parse(textOf(xml, 'LastModified') ?? ''),
  };
}

function failureText(xml: string): string {
  return `the bucket failed: ${textOf(xml, 'Code') ?? 'it said no reason'}`;
}
