import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

const APP = 'http://localhost:3000';

let open: Holdover;
let named: Holdover;
beforeAll(async () => {
  const start = (...args: string[]) => startHoldover({ args, upstream: 'embedded' });
  [open, named] = await Promise.all([
    start('--enable-cors-header'),
    // A person's spelling; browsers compare the answer letter by letter.
    start('--enable-cors-header', 'http://LOCALHOST:3000/'),
  ]);
});
afterAll(() => Promise.all([open, named].map((holdover) => holdover.dispose())));

const holdoverOf = { open: () => open, named: () => named };
type Name = keyof typeof holdoverOf;

/** Headers that v1 clients in browsers send, beside those that are always allowed. */
const SENT = ['Content-Type', 'Authorization', 'X-API-Key', 'Comfy-User', 'Range'];
/** Headers that the SDK for v2 and readers of its streams send besides. */
const SENT_TO_V2 = ['Idempotency-Key', 'Last-Event-ID', 'Comfy-Usage-Source', 'User-Agent'];

/** Makes the preflight of a browser; true when the answer allows the call. */
async function preflight(name: Name, method: string, header: string): Promise<boolean> {
  const answer = await call(holdoverOf[name]().url, '/api/prompt', {
    method: 'OPTIONS',
    headers: {
      Origin: APP,
      'Access-Control-Request-Method': method,
      'Access-Control-Request-Headers': header.toLowerCase(),
    },
  });
  const listed = (header_: string): string[] =>
    String(answer.headers[header_] ?? '')
      .toLowerCase()
      .split(/,\s*/);
  const origin = answer.headers['access-control-allow-origin'];
  return (
    answer.status === 200 &&
    (origin === '*' || origin === APP) &&
    listed('access-control-allow-methods').includes(method.toLowerCase()) &&
    listed('access-control-allow-headers').includes(header.toLowerCase())
  );
}

describe('a page of another origin', () => {
  test.each([...SENT, ...SENT_TO_V2])('may send %s in CORS mode', async (header) => {
    expect(await preflight('open', 'POST', header)).toBe(true);
    expect(await preflight('named', 'POST', header)).toBe(true);
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])('may %s', async (method) => {
    expect(await preflight('open', method, 'Comfy-User')).toBe(true);
  });

  test.each([
    ['open', APP, 200, '*'],
    ['open', 'https://evil.example', 200, '*'],
    ['named', APP, 200, APP],
    ['named', 'https://evil.example', 403, undefined],
    ['named', 'http://localhost:3001', 403, undefined],
    ['named', 'http://localhost:3000.evil', 403, undefined],
    ['named', 'https://localhost:3000', 403, undefined],
    ['named', 'null', 403, undefined],
    ['named', 'HTTP://LOCALHOST:3000', 200, APP],
  ] as const)('%s: a call from %s is %i', async (name, origin, status, allowed) => {
    const options = { method: 'POST', headers: { Origin: origin }, body: '{}' };
    const answer = await call(holdoverOf[name]().url, '/queue', options);
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([
      status,
      allowed,
    ]);
    if (status === 403) expect(JSON.parse(answer.text).error.type).toBe('foreign_origin');
  });

  test('may read errors, and the headers that tell of a file', async () => {
    const answer = await call(open.url, '/prompt', {
      method: 'POST',
      headers: { Origin: APP },
      body: 'bad',
    });
    expect(answer.status).toBe(400);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    const exposed = answer.headers['access-control-expose-headers'];
    expect(exposed).toContain('Content-Range');
    expect(exposed).toContain('Content-Disposition');
  });

  test('may read what the model router says in headers', async () => {
    const answer = await call(open.url, '/v1/models/no/such', { headers: { Origin: APP } });
    const exposed = answer.headers['access-control-expose-headers'];
    for (const name of ['X-Service-Request-Id', 'X-Comfy-Request-Id', 'X-Comfy-Error-Type']) {
      expect(answer.headers[name.toLowerCase()]).toBeDefined();
      expect(exposed).toContain(name);
    }
  });

  test.each([
    ['open', 'https://evil.example', 101],
    ['named', APP, 101],
    ['named', 'https://evil.example', 403],
  ] as const)('%s: a WebSocket from %s is %i', async (name, origin, status) => {
    const socket = new WebSocket(`${holdoverOf[name]().wsUrl}/ws?clientId=x`, { origin });
    const answered = await Promise.race([
      once(socket, 'open').then(() => 101),
      once(socket, 'unexpected-response').then(([, response]) => response.statusCode as number),
    ]);
    socket.on('error', () => {});
    socket.terminate();
    expect(answered).toBe(status);
  });
});

test('an origin that is named does not lock out the server’s own pages', async () => {
  const options = { method: 'POST', headers: { Origin: named.url }, body: '{}' };
  expect((await call(named.url, '/queue', options)).status).toBe(200);
  const socket = new WebSocket(`${named.wsUrl}/ws`, { origin: named.url });
  await once(socket, 'open');
  socket.terminate();
});
