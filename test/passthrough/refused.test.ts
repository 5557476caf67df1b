// A call that is refused before the router sees it gets the router's error, embedded and remote.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHttpServer, listen } from '../../src/http/server.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type RawAnswer, requestText, say } from '../support/clients/raw-socket.ts';
import { type Origin, startOrigin } from './origin.ts';

const PATHS = ['/v1/models', '/v2/models/p/m?a=1', '/proxy/p/x'];

function expectRouter(answer: RawAnswer, status: number, bucket: string): void {
  expect(answer.status).toBe(status);
  expect(JSON.parse(answer.body)).toEqual({ detail: expect.any(String), error_type: bucket });
  expect(answer.headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-error-type': bucket,
    'x-comfy-error-type': bucket,
    'x-service-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
    'x-comfy-request-id': answer.headers['x-service-request-id'],
  });
}

describe.each(['embedded', 'remote'])('%s', (kind) => {
  let origin: Origin;
  let holdover: Holdover;
  beforeAll(async () => {
    origin = await startOrigin();
    const args = kind === 'remote' ? ['--upstream', origin.url] : [];
    holdover = await startHoldover({ upstream: 'embedded', args });
  });
  afterAll(async () => {
    await holdover.dispose();
    await origin.close();
  });

  test.each([
    ['another site', 403, 'forbidden', ['Origin: http://elsewhere.example'], 'foreign_origin'],
    ['another name of this machine', 403, 'forbidden', ['Host: elsewhere.example'], 'foreign_host'],
    [
      'two hosts',
      400,
      'invalid_input',
      ['Host: 127.0.0.1', 'Host: elsewhere.example'],
      'invalid_host',
    ],
    ['an expectation that cannot be met', 417, 'invalid_input', ['Expect: foo'], undefined],
  ] as const)('%s is %i', async (_what, status, bucket, headers, rule) => {
    for (const target of PATHS) {
      for (const method of ['GET', 'POST']) {
        const text = requestText(target, { method, headers });
        expectRouter(await say(holdover.port, text), status, bucket);
      }
    }
    expect(origin.heard).toHaveLength(0);
    const v1 = await say(holdover.port, requestText('/queue', { headers }));
    expect(v1.status).toBe(status);
    const body = v1.body.replace('0\r\n\r\n', '');
    expect(body === '' ? undefined : JSON.parse(body).error.type).toBe(rule);
    expect(v1.headers['x-service-error-type']).toBeUndefined();
  });

  test('OPTIONS is a method like others, but on paths of v1', async () => {
    const headers = ['X-API-Key: k'];
    const ask = (target: string) =>
      say(holdover.port, requestText(target, { method: 'OPTIONS', headers }));
    expectRouter(await ask('/v1/models'), 405, 'invalid_input');
    expect((await ask('/v1/models')).headers['allow']).toContain('GET');
    expect((await ask('/queue')).status).toBe(200);
    expect(origin.heard).toHaveLength(0);
  });
});

test('a body that stops coming is 408', async () => {
  const server = createHttpServer(() => {}, { bodyIdleMs: 100 });
  const port = await listen(server, { listen: '127.0.0.1', port: 0 });
  const stalled = (target: string) =>
    say(port, requestText(target, { method: 'POST', headers: ['Content-Length: 9'] }));
  for (const target of PATHS) expectRouter(await stalled(target), 408, 'invalid_input');
  expect((await stalled('/prompt')).raw).toBe(
    'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n',
  );
  server.close();
});
