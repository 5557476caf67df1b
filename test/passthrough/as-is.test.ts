// /api/v2 of a remote service at Holdover's own address: bytes pass unchanged in both directions.
import { once } from 'node:events';
import { request } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { requestText, say } from '../support/clients/raw-socket.ts';
import { CANARY, expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Echoed, type Origin, bytes, echo, namesOf, startOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;

beforeAll(async () => {
  origin = await startOrigin();
  holdover = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
  origin.on('/echo', echo);
});
afterAll(async () => {
  await holdover.dispose();
  await origin.close();
});
afterEach(() => expectHealthy(holdover));

async function echoed(target: string, options: Parameters<typeof requestText>[1] = {}) {
  const answer = await say(holdover.port, requestText(target, options));
  expect(answer.status).toBe(200);
  return JSON.parse(answer.body) as Echoed;
}

/** The answer a client receives when the service sends these bytes. */
async function heardOf(path: string, lines: readonly [string, ...string[]], options = {}) {
  origin.on(path, bytes(...lines));
  return say(holdover.port, requestText(`/api/v2${path}`, options));
}

describe('a call goes upstream as it is', () => {
  test.each([
    '/api/v2/echo',
    '/api/v2/echo?',
    '/api/v2/echo?a=1&a=2&&b=%20+%zz&c=http://x//y/?z',
    '/api/v2/echo/a%2Fb/%e4//c;d=1/~!$&()*,=:@',
    '/api/v2//echo/',
    '/api/v2/echo/...',
  ])('its path and query byte for byte: %s', async (target) => {
    expect((await echoed(target)).url).toBe(target);
  });

  test('one that names the whole address loses it', async () => {
    const target = `http://127.0.0.1:${holdover.port}/api/v2/echo?x`;
    const { url } = await echoed(target, { headers: [`Host: 127.0.0.1:${holdover.port}`] });
    expect(url).toBe('/api/v2/echo?x');
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])(
    'its method and its body with a length: %s',
    async (method) => {
      const sent = await echoed('/api/v2/echo', { method, body: '{"a": 1.0}' });
      expect([sent.method, sent.body]).toEqual([method, '{"a": 1.0}']);
      expect(namesOf(sent.rawHeaders)).toContain('content-length');
    },
  );

  test.each(['POST', 'DELETE'])('the body of a chunked %s', async (method) => {
    const before = origin.heard.length;
    const headers = ['Transfer-Encoding: chunked', 'Trailer: X-T'];
    const text = requestText('/api/v2/echo', { method, headers });
    const body = '5\r\nhello\r\n1e\r\nGET /api/v2/smuggled HTTP/1.1\r\n0\r\nX-T: 1\r\n\r\n'.replace(
      '1e',
      (30 - 1).toString(16),
    );
    const answer = await say(holdover.port, text + body);
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sent.body).toBe('helloGET /api/v2/smuggled HTTP/1.1');
    expect(namesOf(sent.rawHeaders)).toContain('transfer-encoding');
    expect(namesOf(sent.rawHeaders)).not.toContain('trailer');
    expect(origin.heard.length).toBe(before + 1);
  });

  test('a body that was not announced is not made up', async () => {
    const { rawHeaders } = await echoed('/api/v2/echo');
    expect(namesOf(rawHeaders)).not.toContain('content-length');
    expect(namesOf(rawHeaders)).not.toContain('transfer-encoding');
  });

  test('headers of the call itself keep their values, repeated ones their lines', async () => {
    const headers = [
      'User-Agent: old/1.0',
      'Accept: text/event-stream',
      'Accept-Encoding: zstd, x-odd;q=0.1',
      'Idempotency-Key: k-1',
      'If-None-Match: W/"a", "b"',
      'Range: bytes=0-1',
      'X-Odd:  in the  middle ',
      'X-Twice: a',
      'X-Twice: b',
      'X-Latin: \xe9',
    ];
    const text = Buffer.from(requestText('/api/v2/echo', { headers }), 'latin1');
    const { rawHeaders } = JSON.parse((await say(holdover.port, text)).body) as Echoed;
    const lines = rawHeaders.flatMap((n, i) => (i % 2 ? [] : [`${n}: ${rawHeaders[i + 1]}`]));
    for (const line of headers) {
      expect(lines).toContain(line.replace(/: +/, ': ').trimEnd());
    }
  });

  test('a client that waits for leave to send its body gets it', async () => {
    const call = request(`${holdover.url}/api/v2/echo`, {
      method: 'POST',
      headers: { Expect: '100-continue', 'Content-Length': 4 },
    });
    call.flushHeaders();
    await once(call, 'continue');
    call.end('body');
    const [answer] = await once(call, 'response');
    const sent = (await answer.toArray()).join('');
    expect(JSON.parse(sent)).toMatchObject({ body: 'body' });
    expect(namesOf(JSON.parse(sent).rawHeaders)).not.toContain('expect');
  });
});

describe('what is not of the call stays here', () => {
  const TOLD = [
    'Origin: http://127.0.0.1',
    'Referer: http://127.0.0.1/secret-page',
    `Cookie: session=${CANARY}`,
    'Sec-Fetch-Site: same-origin',
    'Sec-Fetch-Mode: cors',
    'Sec-CH-UA: "x"',
    'X-Forwarded-For: 10.0.0.1',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Proto: https',
    'Forwarded: for=10.0.0.1',
    'X-Real-IP: 10.0.0.1',
    'X-Original-URL: /admin',
    'X-Rewrite-URL: /admin',
    'X-HTTP-Method-Override: DELETE',
    'Access-Control-Request-Method: GET',
    `Proxy-Authorization: Basic ${CANARY}`,
    'Proxy-Connection: keep-alive',
    'Keep-Alive: timeout=5',
    'TE: trailers',
    'Trailer: X-T',
    'X-Of-This-Hop: 1',
    'Connection: close, X-Of-This-Hop, Host, Content-Length',
  ];

  test.each([['GET', ''] as const, ['POST', 'body'] as const])(
    'headers of the way and of browsers: %s',
    async (method, body) => {
      const sent = await echoed('/api/v2/echo', { method, body, headers: TOLD });
      const told = TOLD.map((line) => line.split(':', 1)[0]?.toLowerCase());
      const kept = namesOf(sent.rawHeaders).filter((name) => told.includes(name));
      // Of the connection to the service itself.
      expect(kept).toEqual(['connection']);
      expect(sent.rawHeaders.join().toLowerCase()).toContain(`host,${new URL(origin.url).host}`);
      expect(JSON.stringify(sent)).not.toContain(CANARY);
      expect(sent.body).toBe(body);
    },
  );

  test('v1’s own routes below /v2', async () => {
    origin.on('/userdata', echo);
    const before = origin.heard.length;
    const { status } = await say(holdover.port, requestText('/api/v2/userdata?path='));
    expect(status).not.toBe(503);
    expect(origin.heard.length).toBe(before);
  });

  test('a path that climbs', async () => {
    const before = origin.heard.length;
    const answer = await say(holdover.port, requestText('/api/v2/%2e%2e/admin'));
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error.code).toBe('invalid_request');
    expect(origin.heard.length).toBe(before);
  });

  test('TRACE, which would show the key, and codings that would be lost', async () => {
    const trace = await say(holdover.port, requestText('/api/v2/echo', { method: 'TRACE' }));
    expect(trace.status).toBe(405);
    const headers = ['Transfer-Encoding: gzip, chunked'];
    const text = requestText('/api/v2/echo', { method: 'POST', headers });
    expect((await say(holdover.port, `${text}0\r\n\r\n`)).status).toBe(501);
  });
});

describe('an answer comes back as it is', () => {
  test('status, reason, headers and their lines, body', async () => {
    const answer = await heardOf('/whole', [
      'HTTP/1.1 429 Slow Down Please',
      'Retry-After: 7',
      'X-RateLimit-Left: 0',
      'ETag: W/"x"',
      'Date: Thu, 01 Jan 1970 00:00:00 GMT',
      'Link: <a>; rel=a',
      'Link: <b>; rel=b',
      'Content-Type: application/problem+json',
      'Content-Length: 12',
      '',
      '{"a":  1.0 }',
    ]);
    expect(answer.raw).toMatch(/^HTTP\/1\.1 429 Slow Down Please\r\n/);
    expect(answer.raw).toContain('Link: <a>; rel=a\r\nLink: <b>; rel=b\r\n');
    expect(answer.raw).toContain('X-RateLimit-Left: 0\r\n');
    expect(answer.headers).toMatchObject({
      'retry-after': '7',
      etag: 'W/"x"',
      date: 'Thu, 01 Jan 1970 00:00:00 GMT',
      'content-type': 'application/problem+json',
      'content-length': '12',
    });
    expect(answer.body).toBe('{"a":  1.0 }');
  });

  test('compressed bytes stay compressed', async () => {
    const packed = gzipSync('text '.repeat(1000));
    origin.on('/packed', (_req, res) => {
      res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Type': 'text/plain' }).end(packed);
    });
    const call = request(`${holdover.url}/api/v2/packed`).end();
    const [answer] = await once(call, 'response');
    expect(answer.headers['content-encoding']).toBe('gzip');
    const got = Buffer.concat(await answer.toArray());
    expect(got.equals(packed)).toBe(true);
    expect(gunzipSync(got).length).toBe(5000);
  });

  test('chunks arrive whole, and their trailers stay behind', async () => {
    const answer = await heardOf('/chunks', [
      'HTTP/1.1 200 OK',
      'Transfer-Encoding: chunked',
      'Trailer: X-Sum',
      '',
      '3',
      'abc',
      '2',
      'de',
      '0',
      'X-Sum: 1',
      '',
      '',
    ]);
    expect(answer.body).toBe('abcde');
    expect(answer.raw).not.toMatch(/x-sum/i);
    expect(answer.raw).toMatch(/\r\n0\r\n\r\n$/);
  });

  test.each([
    ['304', ['HTTP/1.1 304 Not Modified', 'ETag: "x"', 'Content-Length: 99', '', '']],
    ['204', ['HTTP/1.1 204 No Content', 'ETag: "x"', '', '']],
  ] as const)('a %s has no body', async (status, lines) => {
    const answer = await heardOf(`/s${status}`, lines);
    expect(answer.status).toBe(Number(status));
    expect(answer.headers).toMatchObject({ etag: '"x"' });
    expect(answer.body).toBe('');
  });

  test('an HTTP/1.0 client gets a body without chunks', async () => {
    const lines: [string, ...string[]] = [
      'HTTP/1.1 200 OK',
      'Transfer-Encoding: chunked',
      '',
      '3',
      'abc',
      '0',
      '',
      '',
    ];
    origin.on('/old', bytes(...lines));
    const text = requestText('/api/v2/old').replace('HTTP/1.1', 'HTTP/1.0');
    const answer = await say(holdover.port, text);
    expect(answer.headers['transfer-encoding']).toBeUndefined();
    expect(answer.body).toBe('abc');
  });

  test('a redirect is the client’s to follow', async () => {
    const location = `${origin.url}/elsewhere?sig=a%2Fb`;
    const before = origin.heard.length;
    const lines: [string, ...string[]] = [
      'HTTP/1.1 302 Found',
      `Location: ${location}`,
      'Content-Length: 0',
      '',
      '',
    ];
    const answer = await heardOf('/moved', lines, { headers: ['X-API-Key: k'] });
    expect(answer.status).toBe(302);
    expect(answer.headers['location']).toBe(location);
    expect(origin.heard.length).toBe(before + 1);
  });

  test('what the service says of its own address is not said of ours', async () => {
    const answer = await heardOf('/own', [
      'HTTP/1.1 200 OK',
      'Set-Cookie: a=1',
      'Set-Cookie: b=2',
      'Access-Control-Allow-Origin: *',
      'Access-Control-Allow-Credentials: true',
      'Strict-Transport-Security: max-age=1',
      'Clear-Site-Data: "*"',
      'Alt-Svc: h3=":1"',
      'Keep-Alive: timeout=1',
      'Proxy-Authenticate: Basic',
      'Connection: keep-alive, X-Of-This-Hop',
      'X-Of-This-Hop: 1',
      'Content-Type: text/html',
      'Content-Length: 2',
      '',
      'ok',
    ]);
    expect(answer.body).toBe('ok');
    expect(answer.raw).not.toMatch(
      /^(set-cookie|access-control|strict|clear|alt-svc|proxy|x-of-this)/im,
    );
    expect(answer.raw).not.toContain('timeout=1\r');
    // A page of the service's users is none that may act as ours.
    expect(answer.headers['content-security-policy']).toContain('sandbox');
  });
});

test('Holdover’s own CORS headers are not the service’s', async () => {
  const open = await startHoldover({
    upstream: 'embedded',
    args: ['--upstream', origin.url, '--enable-cors-header', 'https://app.example'],
  });
  try {
    const lines: [string, ...string[]] = [
      'HTTP/1.1 200 OK',
      'Access-Control-Allow-Origin: *',
      'Access-Control-Expose-Headers: X-Theirs',
      'X-Odd: 1',
      'Content-Length: 0',
      '',
      '',
    ];
    origin.on('/cors', bytes(...lines));
    const headers = ['Origin: https://app.example'];
    const answer = await say(open.port, requestText('/api/v2/cors', { headers }));
    expect(answer.headers['access-control-allow-origin']).toBe('https://app.example');
    expect(answer.headers['access-control-expose-headers']).toMatch(/X-Request-Id,.* X-Odd/i);
    expect(answer.headers['access-control-expose-headers']).not.toMatch(/X-Theirs/i);
  } finally {
    await open.dispose();
  }
});
