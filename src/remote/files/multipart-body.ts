import { randomBytes } from 'node:crypto';
import { open } from 'node:fs/promises';
import type { AssetUpload, GrowingFile, SpooledFile } from '../../protocol/job-api.ts';

/** A multipart body that is read from disk at the speed of the receiver. */
export type MultipartBody = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Buffer>;
};

type Field = readonly [name: string, value: string];

/** Fewer bytes are read only at the end of a file. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Builds the form of `POST /assets` with a known length: the fields first and the file last, as
 * streaming servers need it.
 */
export function uploadBody(upload: AssetUpload, hash: string): MultipartBody {
  const { file, contentType, filePath } = upload;
  const boundary = newBoundary();
  const head = Buffer.from(
    fieldParts(boundary, [['content_type', contentType], ...laterFields(upload, hash)]) +
      fileHead(boundary, filePath, contentType),
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    headers: {
      ...contentTypeOf(boundary),
      'content-length': String(head.length + file.sizeBytes + tail.length),
    },
    body: bodyParts(head, completeFile(file), async () => tail),
  };
}

/**
 * Builds the form while its file still arrives: the file is before the fields that are known only
 * when it is complete. Without a length, the receiver takes no part for the whole.
 */
export function startedUploadBody(
  { file, contentType }: { readonly file: GrowingFile; readonly contentType: string },
  complete: Promise<AssetUpload>,
): MultipartBody {
  const boundary = newBoundary();
  const head = Buffer.from(
    fieldParts(boundary, [['content_type', contentType]]) + fileHead(boundary, 'file', contentType),
  );
  const tail = async (): Promise<Buffer> => {
    const upload = await complete;
    const fields = fieldParts(boundary, laterFields(upload, upload.file.hash));
    return Buffer.from(`\r\n${fields}--${boundary}--\r\n`);
  };
  return { headers: contentTypeOf(boundary), body: bodyParts(head, file, tail) };
}

function newBoundary(): string {
  return `holdover-${randomBytes(16).toString('hex')}`;
}

function contentTypeOf(boundary: string): { readonly 'content-type': string } {
  return { 'content-type': `multipart/form-data; boundary=${boundary}` };
}

/** Returns the fields that are known when the file is complete. */
function laterFields(
  { filePath, tags = [], expiresInSeconds }: AssetUpload,
  hash: string,
): readonly Field[] {
  return [
    ['file_path', filePath],
    ['expected_hash', hash],
    ...tags.map((tag) => ['tags', tag] as const),
    ...(expiresInSeconds === undefined ? [] : [['expires_in', String(expiresInSeconds)] as const]),
  ];
}

function completeFile({ path, sizeBytes }: SpooledFile): GrowingFile {
  return { path, sizeBeyond: async () => sizeBytes };
}

async function* bodyParts(
  head: Buffer,
  file: GrowingFile,
  tail: () => Promise<Buffer>,
): AsyncGenerator<Buffer> {
  yield head;
  yield* readFileChunks(file);
  yield await tail();
}

/** Reads a file in chunks while it is written. */
async function* readFileChunks(file: GrowingFile): AsyncGenerator<Buffer> {
  const handle = await open(file.path);
  try {
    for (let doneBytes = 0; ;) {
      const sizeBytes = await file.sizeBeyond(doneBytes + CHUNK_BYTES);
      const length = Math.min(CHUNK_BYTES, sizeBytes - doneBytes);
      if (length <= 0) return;
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length);
      if (bytesRead === 0) throw new Error('a file to be sent is shorter than it was');
      doneBytes += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await handle.close();
  }
}

function fieldParts(boundary: string, fields: readonly Field[]): string {
  return fields
    .map(
      ([name, value]) =>
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
    )
    .join('');
}

function fileHead(boundary: string, filename: string, contentType: string): string {
  return (
    `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(filename)}"\r\n` +
    `Content-Type: ${contentType.replaceAll(/[\r\n]/g, ' ')}\r\n\r\n`
  );
}

/** Escapes a name as browsers do. */
function quoted(name: string): string {
  return name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
