// The model router of a remote service at Holdover's own address, and partner routes beside it.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { requestText, say } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Echoed, type Origin, bytes, echo, startOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;
/** In front of a service below a mount. */
let moved: Holdover;

beforeAll(async () => {
  origin = await startOrigin();
  holdover = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
  const args = ['--upstream', `${origin.url}/d/1/api/v2`];
  moved = await startHoldover({ upstream: 'embedded', args });
  origin.on('/echo', echo);
  origin.on('/models', echo);
  origin.on('/proxy', echo);
});
afterAll(async () => {
  await holdover.dispose();
  await moved.dispose();
  await origin.close();
});
afterEach(() => expectHealthy(holdover));

describe('its routes go to the service, method, query and body as they are', () => {
  test.each([
    ['GET', '/v1/models', '/v1/models'],
    ['GET', '/v2/models?limit=5&cursor=a%2Bb', '/v2/models?limit=5&cursor=a%2Bb'],
    ['POST', '/v1/models/p/m?strict_mode=1', '/v1/models/p/m?strict_mode=1'],
    ['GET', '/v1/models/p/m/openapi.json', '/v1/models/p/m/openapi.json'],
    ['PUT', '/v1/models/p/m/requests/r/cancel', '/v1/models/p/m/requests/r/cancel'],
    ['DELETE', '/proxy/p/files/a%2Fb', '/proxy/p/files/a%2Fb'],
  ])('%s %s', async (method, target, expected) => {
    const body = method === 'GET' ? '' : '{"prompt":  "a cat", "seed": 12345678901234567890}';
    const headers = ['Idempotency-Key: k', 'Content-Type: application/json'];
    for (const [server, mount] of [
      [holdover, ''],
      [moved, '/d/1'],
    ] as const) {
      const answer = await say(server.port, requestText(target, { method, headers, body }));
      const sent = JSON.parse(answer.body) as Echoed;
      expect(sent).toMatchObject({ method, url: mount + expected, body });
      expect(sent.rawHeaders).toEqual(expect.arrayContaining(['Idempotency-Key', 'k']));
    }
  });

  test.each(['/v1/modelsx', '/v3/models', '/proxyx/a'])('%s stays here', async (path) => {
    const before = origin.heard.length;
    expect((await say(holdover.port, requestText(path))).status).toBe(404);
    expect(origin.heard.length).toBe(before);
  });

  test('no Idempotency-Key is made up', async () => {
    const answer = await say(
      holdover.port,
      requestText('/v1/models/p/m', { method: 'POST', body: '{}' }),
    );
    expect(answer.body.toLowerCase()).not.toContain('idempotency');
  });

  test('links of v2 answers carry the mount and lead here', async () => {
    for (const target of ['/api/v2/echo', '/d/1/api/v2/echo']) {
      const answer = await say(moved.port, requestText(target));
      expect(JSON.parse(answer.body).url).toBe('/d/1/api/v2/echo');
    }
  });
});

describe('its answers come back as they are, each header under both its names', () => {
  const heard = async (path: string, ...lines: readonly [string, ...string[]]) => {
    origin.on(path, bytes(...lines));
    return say(holdover.port, requestText(`/proxy${path}`));
  };

  test('names of today get the contract’s beside them', async () => {
    const answer = await heard(
      '/today',
      'HTTP/1.1 429 Too Many Requests',
      'X-Comfy-Request-Id: r-1',
      'X-Comfy-Error-Type: concurrency_limit_exceeded',
      'X-Comfy-Credits-Used: 0.25',
      'X-Comfy-Router-Dropped-Params: ["a,b"]',
      'X-Committed-Spend-Limit: 100',
      'X-Committed-Spend-Remaining: 3',
      'Retry-After: 4',
      'Content-Length: 2',
      '',
      '{}',
    );
    expect(answer.status).toBe(429);
    expect(answer.body).toBe('{}');
    expect(answer.headers).toMatchObject({
      'x-comfy-request-id': 'r-1',
      'x-service-request-id': 'r-1',
      'x-comfy-error-type': 'concurrency_limit_exceeded',
      'x-service-error-type': 'concurrency_limit_exceeded',
      'x-service-credits-used': '0.25',
      'x-service-router-dropped-params': '["a,b"]',
      'x-committed-spend-limit': '100',
      'x-committed-spend-remaining': '3',
      'retry-after': '4',
    });
  });

  test('the contract’s names get those of today, and what says both stays as it is', async () => {
    const answer = await heard(
      '/contract',
      'HTTP/1.1 200 OK',
      'X-Service-Request-Id: r-2',
      'X-Service-Credits-Used: 1',
      'x-comfy-credits-used: 2',
      'Content-Length: 0',
      '',
      '',
    );
    expect(answer.headers).toMatchObject({
      'x-service-request-id': 'r-2',
      'x-comfy-request-id': 'r-2',
      'x-service-credits-used': '1',
      'x-comfy-credits-used': '2',
    });
    expect(answer.headers['x-comfy-error-type']).toBeUndefined();
  });

  test('304 with its ETag, 409, 422 and binary results', async () => {
    const unchanged = await heard('/same', 'HTTP/1.1 304 Not Modified', 'ETag: "e"', '', '');
    expect([unchanged.status, unchanged.headers['etag'], unchanged.body]).toEqual([304, '"e"', '']);
    const invalid = '{"detail":[{"loc":["body","a"],"msg":"m","type":"missing"}]}';
    const refused = await heard(
      '/invalid',
      'HTTP/1.1 422 Unprocessable Entity',
      'X-Comfy-Error-Type: invalid_input',
      `Content-Length: ${invalid.length}`,
      '',
      invalid,
    );
    expect([refused.status, refused.body]).toEqual([422, invalid]);
    const sound = await heard(
      '/sound',
      'HTTP/1.1 200 OK',
      'Content-Type: audio/wav',
      'Content-Length: 4',
      '',
      '\x00\xff\x80\x01',
    );
    expect(sound.raw.slice(-4)).toBe('\x00\xff\x80\x01');
  });
});

describe('an answer without them, of a gateway or of no router at all, gets an id and its bucket', () => {
  const heard = async (head: readonly string[], target = '/v1/models/bare/m') => {
    origin.on('/bare', bytes(head[0] ?? '', ...head.slice(1), 'Content-Length: 2', '', 'no'));
    return say(holdover.port, requestText(target, { method: 'POST', body: '{}' }));
  };
  const namesOf = ({ headers }: Awaited<ReturnType<typeof heard>>, name: string) =>
    ['service', 'comfy'].map((prefix) => headers[`x-${prefix}-${name}`]);

  test.each([
    [401, 'unauthorized'],
    [422, 'invalid_input'],
    [429, 'concurrency_limit_exceeded'],
    [503, 'service_unavailable'],
    [520, 'internal_error'],
  ])('%i is %s', async (status, bucket) => {
    const answer = await heard([`HTTP/1.1 ${status} X`]);
    expect([answer.status, answer.body]).toEqual([status, 'no']);
    expect(namesOf(answer, 'error-type')).toEqual([bucket, bucket]);
    const [id, alias] = namesOf(answer, 'request-id');
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(alias).toBe(id);
  });

  test('a 429 that says when to try again is about a window', async () => {
    const answer = await heard(['HTTP/1.1 429 X', 'Retry-After: 3']);
    expect(namesOf(answer, 'error-type')).toEqual(['rate_limited', 'rate_limited']);
  });

  test('a result has an id and no bucket', async () => {
    const answer = await heard(['HTTP/1.1 200 OK']);
    expect(namesOf(answer, 'error-type')).toEqual([undefined, undefined]);
    expect(namesOf(answer, 'request-id')[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('what the service says counts, also by one of the names', async () => {
    const answer = await heard([
      'HTTP/1.1 503 X',
      'x-comfy-request-id: r-3',
      'X-Service-Error-Type: brand_new',
    ]);
    expect(namesOf(answer, 'request-id')).toEqual(['r-3', 'r-3']);
    expect(namesOf(answer, 'error-type')).toEqual(['brand_new', 'brand_new']);
  });

  test('a partner’s answer stays its own', async () => {
    const answer = await heard(['HTTP/1.1 404 X'], '/proxy/bare');
    expect(namesOf(answer, 'error-type')).toEqual([undefined, undefined]);
    expect(namesOf(answer, 'request-id')).toEqual([undefined, undefined]);
  });
});

describe('failures of our own speak its language', () => {
  function expectSpoken(answer: Awaited<ReturnType<typeof say>>, status: number, bucket: string) {
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ detail: expect.any(String), error_type: bucket });
    for (const vendor of ['service', 'comfy']) {
      expect(answer.headers[`x-${vendor}-error-type`]).toBe(bucket);
      expect(answer.headers[`x-${vendor}-request-id`]).toMatch(/^[\w-]{36}$/);
    }
    expect(answer.headers['retry-after']).toBeUndefined();
    expect(answer.raw).not.toContain(String(origin.port));
  }

  test('a service that cannot be reached: 503 service_unavailable', async () => {
    const alone = await startHoldover({
      upstream: 'embedded',
      args: ['--upstream', 'http://127.0.0.1:9'],
    });
    try {
      expectSpoken(await say(alone.port, requestText('/v1/models')), 503, 'service_unavailable');
    } finally {
      await alone.dispose();
    }
  });

  test('a call that was lost: 500 internal_error, once', async () => {
    origin.on('/lost', (req) => void req.socket.destroy());
    const before = origin.heard.length;
    const text = requestText('/proxy/lost', { method: 'POST', body: '{}' });
    expectSpoken(await say(holdover.port, text), 500, 'internal_error');
    expect(origin.heard.length).toBe(before + 1);
  });

  test('a read that was lost: 503 service_unavailable', async () => {
    origin.on('/v1/models', (req) => void req.socket.destroy());
    const answer = await say(holdover.port, requestText('/v1/models'));
    expectSpoken(answer, 503, 'service_unavailable');
    expect(JSON.parse(answer.body).detail).not.toContain('effect');
  });

  test('a path that climbs: 400 invalid_input', async () => {
    expectSpoken(await say(holdover.port, requestText('/proxy/../admin')), 400, 'invalid_input');
  });
});
