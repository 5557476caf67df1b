// Sends one file as a multipart form, bytes made in memory, and tells how long it took.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { answer, ready } from './serve.ts';

const CHUNK = randomBytes(256 * 1024);
const BOUNDARY = 'bench-0123456789abcdef';

answer(async ({ url, bytes }: { readonly url: string; readonly bytes: number }) => {
  const startedAt = performance.now();
  const status = await send(new URL(url), bytes);
  return { ms: performance.now() - startedAt, status };
});
ready();

async function send(url: URL, bytes: number): Promise<number> {
  // Never the same file twice: what is known would not be sent on.
  randomBytes(16).copy(CHUNK);
  const head =
    field('overwrite', 'true') +
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="image"; filename="bench.bin"\r\n` +
    'Content-Type: application/octet-stream\r\n\r\n';
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  const socket = connect(Number(url.port), url.hostname);
  const answered = once(socket, 'data') as Promise<[Buffer]>;
  socket.write(
    `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n` +
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\n` +
      `Content-Length: ${head.length + bytes + tail.length}\r\n\r\n${head}`,
  );
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    const isRoom = socket.write(left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK);
    if (!isRoom) await once(socket, 'drain');
  }
  socket.write(tail);
  const [first] = await answered;
  socket.destroy();
  return Number(/^HTTP\/1\.1 (\d+)/.exec(first.toString('latin1'))?.[1] ?? 599);
}

function field(name: string, value: string): string {
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}
