// Calls that a client pipelines behind a slow one, and leaves: Node itself tells them nothing.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { createBodyMemory } from '../../src/http/json/body-memory.ts';
import { createBodyReader } from '../../src/http/json-body.ts';
import { type HttpTimeouts, createHttpServer } from '../../src/http/server.ts';

const FIRST = 'GET /first HTTP/1.1\r\nHost: h\r\n\r\n';
const MB = 1024 * 1024;

type OnSecond = Parameters<typeof createHttpServer>[0];

/** Sends two calls in one write. The answer to the first one stays open. */
async function pipeline(
  second: string,
  onSecond: OnSecond,
  timeouts: Partial<HttpTimeouts> = {},
): Promise<{ readonly socket: ReturnType<typeof connect>; readonly first: ServerResponse }> {
  let first: ServerResponse | undefined;
  const server = createHttpServer((req, res) => {
    if (req.url === '/first') first = res;
    else onSecond(req, res);
  }, timeouts);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write(FIRST + second);
  await expect.poll(() => first).toBeDefined();
  return { socket, first: first! };
}

test('a queued answer is closed with its connection', async () => {
  let closes = 0;
  let queued: ServerResponse | undefined;
  const { socket } = await pipeline('GET /second HTTP/1.1\r\nHost: h\r\n\r\n', (_, res) => {
    queued = res.once('close', () => closes++);
  });
  await expect.poll(() => queued).toBeDefined();
  socket.destroy();
  await expect.poll(() => closes).toBe(1);
  expect(queued?.destroyed).toBe(true);
});

test('a body that is read for a queued answer gives its memory back', async () => {
  const memory = createBodyMemory({ limitBytes: 64 * MB });
  const bodies = createBodyReader({ maxBytes: 8 * MB, memory });
  const head = `POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: ${4 * MB}\r\n\r\n{`;
  const { socket } = await pipeline(head, (req, res) => void bodies.read({ req, res }));
  await expect.poll(() => bodies.reservedBytes()).toBeGreaterThan(0);
  socket.destroy();
  await expect.poll(() => bodies.reservedBytes()).toBe(0);
});

test('a body that stops behind an open answer writes nothing into that answer', async () => {
  const head = 'POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{';
  const { socket, first } = await pipeline(head, () => {}, { bodyIdleMs: 50 });
  let received = '';
  socket.on('data', (bytes) => (received += bytes.toString()));
  first.writeHead(200, { 'Content-Length': '100' }).write('part');
  await once(socket, 'close');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(received).not.toContain('408');
});
