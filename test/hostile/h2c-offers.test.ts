// RFC 9110 7.8: a client that offers a protocol which the server does not take is served over HTTP/1.1.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Echoed, type Origin, openBehindOrigin } from '../passthrough/origin.ts';
import { type Holdover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import { dial, requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';

const holdover = useHoldover({ upstream: 'embedded' });
let origin: Origin;
let remote: Holdover;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ origin, holdover: remote, close } = await openBehindOrigin());
});
afterAll(() => close());
afterEach(() => expectHealthy(holdover));

/** As curl and Java send it. */
const OFFER = ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA'];
const WITH_CLOSE = ['Connection: close, Upgrade, HTTP2-Settings', ...OFFER];
const WITHOUT_CLOSE = ['Connection: Upgrade, HTTP2-Settings', ...OFFER];

test.each([
  ['GET', '/queue', '', 200],
  ['GET', '/ws', '', 400],
  ['GET', '/v1/models', '', 401],
  ['POST', '/queue', '{"clear":true}', 200],
  ['POST', '/prompt', '{}', 400],
] as const)('%s %s', async (method, target, body, status) => {
  const answer = await say(
    holdover.port,
    requestText(target, { method, body, headers: WITH_CLOSE }),
  );
  expect(answer.status).toBe(status);
  expect(answer.headers['upgrade']).toBeUndefined();
});

test('its headers and its body in chunks arrive as they are', async () => {
  const headers = [
    ...WITH_CLOSE,
    'Transfer-Encoding: chunked',
    'X-Latin: \xe9',
    'X-T: a',
    'X-T: b',
  ];
  const wire = await dial(remote.port);
  const text = requestText('/api/v2/echo', { method: 'POST', headers });
  wire.send(Buffer.from(`${text}5\r\nhel`, 'latin1'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  wire.send('lo\r\n0\r\n\r\n');
  const sent = JSON.parse((await wire.answer()).body) as Echoed;
  expect(sent.body).toBe('hello');
  expect(sent.rawHeaders.join()).toContain('X-Latin,\xe9');
  expect(sent.rawHeaders.join()).toContain('X-T,a,X-T,b');
  expect(sent.rawHeaders.join()).not.toMatch(/h2c|settings/i);
});

test('call after call on one connection, without a warning', async () => {
  const wire = await dial(holdover.port);
  for (let i = 0; i < 20; i += 1) wire.send(requestText('/queue', { headers: WITHOUT_CLOSE }));
  wire.send(requestText('/queue'));
  const { raw } = await wire.answer();
  expect(raw.match(/HTTP\/1\.1 200 OK/g)).toHaveLength(21);
  expect(holdover.log()).not.toMatch(/warning/i);
});

test('after a call that is still being answered', async () => {
  origin.on('/slow', (_req, res) => void setTimeout(() => res.end('first'), 200));
  const wire = await dial(remote.port);
  const first = requestText('/api/v2/slow', { headers: ['Connection: keep-alive'] });
  wire.send(first + requestText('/api/v2/echo?second', { headers: WITH_CLOSE }));
  expect((await wire.answer()).raw).toMatch(/first[^]*200 OK[^]*\/api\/v2\/echo\?second/);
});

test('who leaves before that leaves nothing behind', async () => {
  origin.on('/slower', (_req, res) => void setTimeout(() => res.end('first'), 200));
  const wire = await dial(remote.port);
  const first = requestText('/api/v2/slower', { headers: ['Connection: keep-alive'] });
  wire.send(first + requestText('/api/v2/echo?never', { headers: WITH_CLOSE }));
  await new Promise((resolve) => setTimeout(resolve, 50));
  wire.reset();
  await expectHealthy(remote);
});

test('a head with too many headers is refused once, and its body is no request', async () => {
  const many = Array.from({ length: 250 }, (_, i) => `X-${i}: v`);
  const body = requestText('/queue');
  const headers = [...WITHOUT_CLOSE, ...many, `Content-Length: ${body.length}`];
  const text = requestText('/queue', { method: 'POST', headers, body });
  const { status, headers: answered, raw } = await say(holdover.port, text);
  expect([status, answered['connection']]).toEqual([431, 'close']);
  expect(raw.match(/HTTP\/1\.1 /g)).toHaveLength(1);
});
