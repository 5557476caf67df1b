// Calls that a client pipelines: they are served one after the other, and other clients in between.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { type RequestListener, type ServerResponse, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { lastAnswer } from '../../src/http/client-connection.ts';
import { type HttpTimeouts, createHttpServer, onWebSocket } from '../../src/http/server.ts';

async function open(handler: RequestListener, timeouts: Partial<HttpTimeouts> = {}) {
  const server = createHttpServer(handler, timeouts);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  return { server, port, socket };
}

function callOf(target: string, ...headers: readonly string[]): string {
  return [`GET ${target} HTTP/1.1`, 'Host: h', ...headers, '', ''].join('\r\n');
}

test('other clients are served between the calls of one', async () => {
  let served = 0;
  const { port, socket } = await open((_, res) => {
    const endMs = performance.now() + 1;
    while (performance.now() < endMs);
    served++;
    res.end();
  });
  socket.write(callOf('/').repeat(300));
  await once(socket, 'data');
  const [answer] = await once(get({ port, host: '127.0.0.1', agent: false }), 'response');
  await text(answer);
  expect(served).toBeLessThan(100);
  await expect.poll(() => served, { timeout: 10_000 }).toBe(301);
});

test('a call is served when the answer before it has ended', async () => {
  const answers: ServerResponse[] = [];
  const { socket } = await open((_, res) => void answers.push(res));
  const received = text(socket);
  socket.write(callOf('/1') + callOf('/2', 'Expect: more') + callOf('/3', 'Connection: close'));
  await expect.poll(() => answers.length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(answers).toHaveLength(1);
  answers[0]?.end('one');
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.end('three');
  expect(await received).toMatch(/ 200 OK\r\n[^]*one[^]* 417 [^]* 200 OK\r\n[^]*three/);
});

test('a connection that waits for its next call keeps none that has ended', async () => {
  const answers: ServerResponse[] = [];
  const { server, socket } = await open((_, res) => void answers.push(res));
  const [[peer]] = await Promise.all([once(server, 'connection'), once(socket, 'connect')]);
  socket.write(callOf('/1'));
  await expect.poll(() => answers.length).toBe(1);
  expect(lastAnswer(peer)).toBe(answers[0]);
  answers[0]?.end();
  await expect.poll(() => lastAnswer(peer)).toBeUndefined();
});

test('bytes that are no request are not answered into an answer that has begun', async () => {
  const answers: ServerResponse[] = [];
  const { socket } = await open((_, res) => void answers.push(res));
  const received = text(socket);
  socket.write(callOf('/1'));
  await expect.poll(() => answers.length).toBe(1);
  answers[0]?.writeHead(200, { 'Content-Length': '9' }).write('half');
  await once(socket, 'data').catch(() => {});
  socket.write('no request\r\n\r\n');
  expect((await received.catch(String)).replace(/^[^]*\r\n\r\n/, '')).toBe('half');
});

test('calls that a client has left are not served', async () => {
  const answers: ServerResponse[] = [];
  const { socket } = await open((_, res) => void answers.push(res));
  socket.write(callOf('/1') + callOf('/2'));
  await expect.poll(() => answers.length).toBe(1);
  socket.destroy();
  await once(answers[0]!, 'close');
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(answers).toHaveLength(1);
});

test('no more is read while a thousand calls wait', async () => {
  const first: ServerResponse[] = [];
  let served = 0;
  const { socket, server } = await open((_, res) => {
    if (++served === 1) first.push(res);
    else res.end();
  });
  let read = 0;
  server.on('request', () => void read++);
  const count = 12_000;
  socket.write(callOf('/').repeat(count));
  await expect.poll(() => read).toBeGreaterThan(999);
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(read).toBeLessThan(5000);
  socket.resume();
  first[0]?.end();
  await expect.poll(() => served, { timeout: 30_000 }).toBe(count);
});

test('a WebSocket is opened behind the answers before it', async () => {
  const answers: ServerResponse[] = [];
  const { socket, server } = await open((_, res) => void answers.push(res));
  onWebSocket(server, (_request, upgraded) => void upgraded.end('upgraded'));
  const received = text(socket);
  socket.write(callOf('/1') + callOf('/ws', 'Connection: Upgrade', 'Upgrade: websocket'));
  await expect.poll(() => answers.length).toBe(1);
  answers[0]?.end('one');
  expect(await received).toMatch(/one[^]*upgraded$/);
});

test('a body that stops behind an open answer writes nothing into that answer', async () => {
  let first: ServerResponse | undefined;
  const { socket } = await open((_, res) => void (first = res), { bodyIdleMs: 50 });
  let received = '';
  socket.on('data', (bytes) => (received += bytes.toString()));
  socket.write(`${callOf('/')}POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n{`);
  await expect.poll(() => first).toBeDefined();
  first?.writeHead(200, { 'Content-Length': '100' }).write('part');
  await once(socket, 'close');
  expect(received).toMatch(/^HTTP\/1\.1 200 OK/);
  expect(received).not.toContain('408');
});
