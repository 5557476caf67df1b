// Sends one file as a multipart form, bytes made in memory, and tells how long it took.
import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { answer, ready } from './serve.ts';

export type Upload = { readonly url: string; readonly bytes: number };
export type Sent = { readonly ms: number; readonly status: number };

const CHUNK = randomBytes(250_000);
const BOUNDARY = 'bench-0123456789abcdef';
const HEAD =
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="overwrite"\r\n\r\ntrue\r\n` +
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="bench.bin"\r\n` +
  'Content-Type: application/octet-stream\r\n\r\n';
const TAIL = `\r\n--${BOUNDARY}--\r\n`;

answer(async ({ url, bytes }: Upload): Promise<Sent> => {
  // Never the same file twice: what is known would not be sent on.
  randomBytes(16).copy(CHUNK);
  const startedAt = performance.now();
  const { statusCode, body } = await request(`${url}/upload/image`, {
    method: 'POST',
    headers: {
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-length': String(HEAD.length + bytes + TAIL.length),
    },
    body: Readable.from(form(bytes)),
    headersTimeout: 0,
  });
  await body.dump();
  return { ms: performance.now() - startedAt, status: statusCode };
});
ready();

async function* form(bytes: number): AsyncGenerator<Buffer> {
  yield Buffer.from(HEAD);
  for (let left = bytes; left > 0; left -= CHUNK.length) yield CHUNK.subarray(0, left);
  yield Buffer.from(TAIL);
}
