// What a service answers in unusual ways reaches the client unchanged.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Holdover } from '../support/processes/holdover.ts';
import { requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Origin, bytes, openBehindOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;
let close: () => Promise<void>;

beforeAll(async () => void ({ origin, holdover, close } = await openBehindOrigin()));
afterAll(() => close());
afterEach(() => expectHealthy(holdover));

const ask = (path: string, options: Parameters<typeof requestText>[1] = {}) =>
  say(holdover.port, requestText(`/api/v2${path}`, options));

test('each answer has the headers of this server, unless the service sends them', async () => {
  origin.on('/says', (_req, res) => {
    const theirs = { 'X-Content-Type-Options': 'theirs', 'Cache-Control': 'public' };
    res.writeHead(200, { ...theirs, 'Content-Length': 0 }).end();
  });
  const named = { headers: ['X-Request-Id: asked-1'] };
  const { headers } = await ask('/echo', named);
  expect(headers).toMatchObject({
    'x-request-id': 'asked-1',
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringContaining('sandbox'),
    'cache-control': 'private, no-store',
  });
  expect((await ask('/says', named)).headers).toMatchObject({
    'x-content-type-options': 'theirs',
    'cache-control': 'public',
  });
});

test('a call is in the log and in the counts, without its key', async () => {
  const target = '/echo/logged?token=never-shown';
  await ask(target, { method: 'POST', body: '{}', headers: ['X-API-Key: never-shown'] });
  const line = () =>
    holdover
      .log()
      .split('\n')
      .find((text) => text.includes('/echo/logged?'));
  await expect.poll(line).toMatch(/"user":"[0-9a-f]{32}","method":"POST".*"status":200/);
  expect(holdover.log()).not.toContain('never-shown');
  const metrics = await (await fetch(`${holdover.url}/metrics`)).text();
  expect(metrics).toMatch(
    /requests_total\{method="POST",route="\/api\/v2\/\*",outcome="2xx"\} [1-9]/,
  );
});

test('an empty body with a length keeps the length', async () => {
  const answer = await ask('/echo', { method: 'DELETE', headers: ['Content-Length: 0'] });
  expect(answer.body.toLowerCase()).toContain('"content-length","0"');
});

test('a HEAD is answered when the service sends a body', async () => {
  origin.on('/headless', bytes('HTTP/1.1 404 Not Found', 'Content-Length: 2', '', '{}'));
  const answer = await ask('/headless', { method: 'HEAD' });
  expect([answer.status, answer.headers['content-length'], answer.body]).toEqual([404, '2', '']);
});

test.each([
  ['UTF-8', Buffer.from('\u56fe\xe4')],
  ['Latin-1', Buffer.from([0xe4])],
])('the name of a file keeps its bytes: %s', async (_coding, name) => {
  const value = name.toString('latin1');
  const disposition = `Content-Disposition: attachment; filename="${value}"`;
  const length = 'Content-Length: 4';
  origin.on('/named', bytes('HTTP/1.1 200 OK', length, disposition, '', 'body'));
  const { raw, status, body } = await ask('/named');
  expect([status, body]).toEqual([200, 'body']);
  expect(raw).toContain(`${disposition}\r\n`);
  expect(raw.match(/content-length/gi)).toHaveLength(1);
});

test.each([
  ['UTF-8', Buffer.from('Gr\xfc\xdfe')],
  ['Latin-1', Buffer.from([0xe9])],
])('a reason phrase keeps its bytes: %s', async (_coding, words) => {
  const line = `HTTP/1.1 200 ${words.toString('latin1')}`;
  origin.on('/words', bytes(line, 'Content-Length: 4', '', 'body'));
  const { raw, body } = await ask('/words');
  expect(raw.slice(0, line.length + 2)).toBe(`${line}\r\n`);
  expect(body).toBe('body');
});

test('an answer without a length is complete when its connection ends, and cut off when it is reset', async () => {
  const start = 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart';
  origin.on('/ends', (req) => void req.socket.end(start));
  origin.on('/reset', (req) => {
    req.socket.write(start);
    setTimeout(() => req.socket.resetAndDestroy(), 100);
  });
  expect((await ask('/ends')).raw).toMatch(/part\r\n0\r\n\r\n$/);
  const cut = await ask('/reset');
  expect(cut.raw).toContain('part');
  expect(cut.raw).not.toMatch(/\r\n0\r\n/);
});

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const LONG = 'HTTP/1.1 100 \r\nX-Odd: 1\r\nX-Even: 2\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody';

test.each([
  ['at once', [CONTINUE + ANSWER]],
  ['before the answer', [CONTINUE, ANSWER]],
  ['twice, with headers', [CONTINUE + LONG, ANSWER]],
  ['in pieces', ['HTT', 'P/1.1 10', '0 Continue\r\n\r', '\n', ANSWER]],
])('a call is answered when it is said %s', async (how, pieces) => {
  const path = `/proxy/${how.replaceAll(' ', '-')}`;
  origin.on(path, async ({ socket }) => {
    socket.setNoDelay();
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const before = origin.heard.length;
  for (const method of ['POST', 'PUT', 'GET']) {
    const body = method === 'GET' ? '' : '{"seed":1}';
    const answer = await say(holdover.port, requestText(path, { method, body }));
    expect([method, answer.status, answer.body]).toEqual([method, 200, 'body']);
  }
  expect(origin.heard.length).toBe(before + 3);
});

test('no call uses what Node calls deprecated: operators take its warnings for faults', () => {
  expect(holdover.log()).not.toMatch(/deprecat|\bDEP\d{4}\b/i);
});
