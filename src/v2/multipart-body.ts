import { randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { AssetUpload } from '../wire/jobs.ts';

/** A multipart body of known length, read from disk as fast as it is taken. */
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
    body: parts(head, file.path, tail),
  };
}

async function* parts(head: Buffer, path: string, tail: Buffer): AsyncGenerator<Buffer> {
  yield head;
  for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
    yield chunk as Buffer;
  }
  yield tail;
}

function fieldPart(boundary: string, name: string, value: string): string {
  return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

/** As browsers write names that would end the header early. */
function quoted(name: string): string {
  return name.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
