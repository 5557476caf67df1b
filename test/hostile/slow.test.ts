// perf-reliability.md 3.5 G: peers that take their time.
import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createHttpServer } from '../../src/http/server.ts';
import { type Wire, dial, requestText } from '../support/clients/raw-socket.ts';

const BODY_IDLE_MS = 300;

let server: Server;
let port: number;
let wires: Wire[];

beforeEach(async () => {
  wires = [];
  server = createHttpServer(serve, { headersMs: 300, bodyIdleMs: BODY_IDLE_MS });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  port = (server.address() as AddressInfo).port;
});
/** Answers with the size of the body once it is there. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  let size = 0;
  response.setHeader('X-Request-Id', 'given by the app');
  if (request.url === '/deaf') return;
  if (request.url === '/begun') response.write('begun');
  if (request.url === '/slow') return void setTimeout(() => response.end('at last'), 1000);
  request.on('data', (chunk: Buffer) => (size += chunk.length));
  request.once('end', () => response.end(`${size}`));
}
afterEach(() => {
  for (const wire of wires) wire.reset();
  server.closeAllConnections();
  server.close();
});

async function start(text: string): Promise<Wire> {
  const wire = await dial(port);
  wires.push(wire);
  wire.send(text);
  return wire;
}

const post = (target: string, ...headers: string[]): string =>
  requestText(target, { method: 'POST', headers });

describe('408 and the end of the connection for', () => {
  test.each([
    ['headers that do not come', 'GET /queue HTTP/1.1\r\nHost: 127.0.0.1\r\n'],
    ['half a request line', 'GET /que'],
    ['a body of which nothing comes', post('/', 'Content-Length: 10')],
    ['a body that stops', `${post('/', 'Content-Length: 10')}12345`],
    ['a body in chunks that stops', `${post('/', 'Transfer-Encoding: chunked')}5\r\n12345\r\n`],
    ['an unread body that stops', `${post('/deaf', 'Content-Length: 10')}12345`],
  ])('%s', async (_, text) => {
    const wire = await start(text);
    expect(await wire.answer()).toMatchObject({ status: 408 });
  });
});

test('the answer to a body that stops has the id of the request', async () => {
  const wire = await start(`${post('/deaf', 'Content-Length: 10')}12345`);
  expect((await wire.answer()).headers).toMatchObject({ 'x-request-id': 'given by the app' });
});

test('a connection on which nothing is said is closed', async () => {
  await (await start('')).answer();
});

test('an answer that has begun is cut off, not mended, when the body stops', async () => {
  const wire = await start(`${post('/begun', 'Content-Length: 10')}1`);
  const { raw } = await wire.answer();
  expect(raw).toContain('begun');
  expect(raw).not.toContain('408');
});

test('a body that keeps coming, byte by byte, takes as long as it takes', async () => {
  const wire = await start(post('/', 'Content-Length: 8'));
  for (let i = 0; i < 8; i++) {
    await new Promise((resolve) => setTimeout(resolve, BODY_IDLE_MS / 2));
    wire.send('x');
  }
  expect(await wire.answer()).toMatchObject({ status: 200, body: '8' });
});

test('an answer may take longer than a body may pause', async () => {
  const wire = await start(`${post('/slow', 'Content-Length: 1')}x`);
  expect(await wire.answer()).toMatchObject({ status: 200, body: 'at last' });
});

test('a second request on the connection is as patient as the first', async () => {
  const keep = 'Connection: keep-alive';
  const wire = await start(`${post('/', 'Content-Length: 1', keep)}x`);
  await wire.until('\r\n\r\n1');
  await new Promise((resolve) => setTimeout(resolve, BODY_IDLE_MS * 2));
  wire.send(`${post('/', 'Content-Length: 2')}xy`);
  expect((await wire.answer()).raw).toMatch(/\r\n\r\n2$/);
});
