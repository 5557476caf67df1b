import { randomBytes } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { AssetUpload, SpooledFile } from '../../protocol/job-api.ts';

/** A multipart body of known length, read from disk at the speed of the receiver. */
export type MultipartBody = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Buffer>;
};

const CHUNK_BYTES = 1024 * 1024;

/** The form of `POST /assets`: what describes the file first, the file last, as streaming servers need it. */
export function uploadBody(upload: AssetUpload, hash: string): MultipartBody {
  const { file, contentType, filePath, tags = [], expiresInSeconds } = upload;
  const boundary = `holdover-${randomBytes(16).toString('hex')}`;
  const fields: readonly (readonly [string, string])[] = [
    ['content_type', contentType],
    ['file_path', filePath],
    ['expected_hash', hash],
    ...tags.map((tag) => ['tags', tag] as const),
    ...(expiresInSeconds === undefined ? [] : [['expires_in', String(expiresInSeconds)] as const]),
  ];
  const head = Buffer.from(
    fields.map(([name, value]) => fieldPart(boundary, name, value)).join('') +
      `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${quoted(filePath)}"\r\n` +
      `Content-Type: ${contentType.replaceAll(/[\r\n]/g, ' ')}\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    headers: {
      'content-type': `multipart/form-data; boundary=${boundary}`,
      'content-length': String(head.length + file.sizeBytes + tail.length),
    },
    body: bodyParts(head, file, tail),
  };
}

async function* bodyParts(head: Buffer, file: SpooledFile, tail: Buffer): AsyncGenerator<Buffer> {
  yield head;
  yield* readFileChunks(file);
  yield tail;
}

/**
 * Two buffers alternate: one is read while the other is sent. A request for the next part means
 * that the previous one was sent: no socket accepts a chunk of this size before it is sent.
 */
async function* readFileChunks({ path, sizeBytes }: SpooledFile): AsyncGenerator<Buffer> {
  const bufferBytes = Math.min(CHUNK_BYTES, sizeBytes + 1);
  const handle = await open(path);
  try {
    let [next, other] = [Buffer.allocUnsafeSlow(bufferBytes), Buffer.allocUnsafeSlow(bufferBytes)];
    let reading = fillBuffer(handle, next);
    for (let bytes = await reading; bytes.length > 0; bytes = await reading) {
      reading = fillBuffer(handle, other);
      // Awaited by the next iteration, if there is one.
      reading.catch(() => {});
      [next, other] = [other, next];
      yield bytes;
    }
  } finally {
    await handle.close();
  }
}

/** Only the last buffer of a file is not full. */
async function fillBuffer(handle: FileHandle, buffer: Buffer): Promise<Buffer> {
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(buffer, length, buffer.length - length);
    length += bytesRead;
    if (bytesRead === 0 || length === buffer.length) return buffer.subarray(0, length);
  }
}

function fieldPart(boundary: string, name: string, value: string): string {
  return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

/** Escapes a name as browsers do. */
function quoted(name: string): string {
  return name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
