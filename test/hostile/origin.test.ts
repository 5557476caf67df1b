// perf-reliability.md 3.5 A, and the headers of F and G that come into us.
import { hostname } from 'node:os';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover } from '../support/processes/holdover.ts';
import { useHoldover } from '../support/processes/use-holdover.ts';
import {
  type RawAnswer,
  dial,
  requestText,
  say,
  upgradeText,
} from '../support/clients/raw-socket.ts';
import { CANARY, expectNoLeak, expectHealthy } from '../support/processes/expect-healthy.ts';

const server = useHoldover();
const OPEN =
  '--listen 0.0.0.0 --allow-insecure-bind --allowed-hosts comfy.x --public-url https://public.x';
const open = useHoldover({ args: OPEN.split(' ') });
afterEach(() => expectHealthy(server));

async function ask(
  target: string,
  options: Parameters<typeof requestText>[1] = {},
  at: Holdover = server,
): Promise<RawAnswer> {
  const key = `X-API-Key: ${CANARY}`;
  const headers = [key, ...(options.headers ?? [])];
  const answer = await say(at.port, requestText(target, { ...options, headers }));
  expectNoLeak(answer);
  return answer;
}

const EMPTY_PROMPT = { method: 'POST', body: '{"prompt":{}}' };

describe('a name that is not ours', () => {
  test.each([
    ['attacker.com:8188', 403],
    ['127.0.0.1.nip.io', 403],
    ['localhost.attacker.com', 403],
    ['0x7f000001.attacker.com', 403],
    ['192.168.0.1', 403],
    ['[::ffff:127.0.0.1]', 403],
    ['127.0.0.1:8188@evil', 400],
    ['127.0.0.1/evil', 400],
    ['127.0.0.1:99999', 400],
    ['', 400],
    ['localhost.', 200],
    ['LOCALHOST:8188', 200],
    ['[::1]:8188', 200],
    ['127.0.0.1', 200],
    ['127.9.9.9', 200],
    ['0.0.0.0:8188', 200],
    ['host.docker.internal:8188', 200],
    ['gateway.docker.internal', 200],
    ['comfy.localhost:8188', 200],
    ['evil.host.docker.internal', 403],
    ['host.docker.internal.evil', 403],
    ['box.local', 403],
    ['box', 403],
  ])('Host: %s is answered %i', async (host, status) => {
    expect(await ask('/queue', { headers: [`Host: ${host}`] })).toMatchObject({ status });
  });

  test('a browser may not call by the address of all interfaces', async () => {
    const headers = ['Host: 0.0.0.0:8188', 'User-Agent: Mozilla/5.0 (X11; Linux x86_64)'];
    expect(await ask('/queue', { headers })).toMatchObject({ status: 403 });
  });

  test('two of them are 400, whatever they say', async () => {
    const headers = ['Host: 127.0.0.1', 'Host: 127.0.0.1'];
    expect(await ask('/queue', { headers })).toMatchObject({ status: 400 });
  });

  test.each(['GET /queue', 'OPTIONS /', 'GET /', 'HEAD /system_stats'])(
    'none is needed in HTTP/1.0, where health checks send none: %s',
    async (call) => {
      const text = `${call} HTTP/1.0\r\n\r\n`;
      expect(await say(server.port, text)).toMatchObject({ status: 200 });
    },
  );

  test.each(['attacker.com', ''])('is checked in HTTP/1.0 as well: %j', async (host) => {
    const { status } = await say(server.port, `GET /queue HTTP/1.0\r\nHost: ${host}\r\n\r\n`);
    expect([400, 403]).toContain(status);
  });

  test('an origin is checked without a host', async () => {
    const text = 'POST /interrupt HTTP/1.0\r\nOrigin: https://evil\r\n\r\n';
    expect(await say(server.port, text)).toMatchObject({ status: 403 });
  });

  test('is refused before the upgrade too', async () => {
    const headers = { Host: 'attacker.com:8188' };
    const answer = await say(server.port, upgradeText('/ws', { headers }));
    expect(answer).toMatchObject({ status: 403 });
  });
});

describe('on a bind that is open to all without a token', () => {
  test.each([
    '192.168.0.1:8188',
    '203.0.113.9',
    '[2001:db8::1]:8188',
    '127.0.0.1',
    'box:8188',
    'comfy.localhost',
    'Box.local',
    'box.lan',
    'box.home.arpa',
    'host.docker.internal',
    'db.corp.internal',
    'holdover.ns.svc',
    'holdover.ns.svc.cluster.local:80',
    `${hostname()}:8188`,
    'comfy.x',
    'public.x',
  ])('Host: %s is served', async (host) => {
    expect(await ask('/queue', { headers: [`Host: ${host}`] }, open)).toMatchObject({
      status: 200,
    });
  });

  test.each(['rebound.example', 'holdover.ns.svc.evil.example', 'evillan.example', 'box.lan.evil'])(
    'a page of %s does nothing, and the refusal names --allowed-hosts',
    async (host) => {
      const headers = [`Host: ${host}:8188`, `Origin: http://${host}:8188`];
      const options = { method: 'POST', body: '{"clear":true}', headers };
      const answer = await ask('/history', options, open);
      expect(answer).toMatchObject({ status: 403 });
      const { error } = JSON.parse(answer.body);
      expect(error).toMatchObject({ type: 'foreign_host' });
      expect(error.message).toContain('--allowed-hosts');
      const socket = await say(open.port, upgradeText('/ws', { headers: { Host: host } }));
      expect(socket).toMatchObject({ status: 403 });
    },
  );
});

describe('a page of another site', () => {
  test.each([
    'https://evil',
    'null',
    'http://localhost.attacker.com:8188',
    'http://127.0.0.1:8188.evil',
    'http://127.0.0.1.evil',
    'chrome-extension://abc',
    '//evil',
    'file://evil',
    '%://evil',
  ])('POST /prompt from %s is 403 without CORS headers', async (origin) => {
    const headers = ['Host: 127.0.0.1:8188', `Origin: ${origin}`];
    const answer = await ask('/prompt', { ...EMPTY_PROMPT, headers });
    expect(answer).toMatchObject({ status: 403 });
    const rule = origin === 'null' ? 'opaque_origin' : 'foreign_origin';
    expect(JSON.parse(answer.body)).toMatchObject({ error: { type: rule } });
    expect(answer.raw).not.toMatch(/access-control/i);
  });

  test.each([
    ['127.0.0.1:8188', 'http://127.0.0.1:9999'],
    ['127.0.0.1:8188', 'http://127.0.0.1'],
    ['localhost:8188', 'http://localhost'],
    ['localhost:8188', 'https://localhost'],
  ])('on another port of this machine is 403: Host %s, Origin %s', async (host, origin) => {
    const headers = [`Host: ${host}`, `Origin: ${origin}`];
    expect(await ask('/prompt', { ...EMPTY_PROMPT, headers })).toMatchObject({ status: 403 });
  });

  test.each(['cross-site', 'CROSS-SITE'])('that says Sec-Fetch-Site: %s is 403', async (site) => {
    const headers = [`Sec-Fetch-Site: ${site}`];
    expect(await ask('/queue', { headers })).toMatchObject({ status: 403 });
    expect(await ask('/prompt', { ...EMPTY_PROMPT, headers })).toMatchObject({ status: 403 });
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data'])(
    'that needs no preflight because its body is %s is 403',
    async (type) => {
      const site = [`Content-Type: ${type}`, 'Sec-Fetch-Site: cross-site'];
      const origin = [`Content-Type: ${type}`, 'Origin: https://evil'];
      expect(await ask('/prompt', { ...EMPTY_PROMPT, headers: site })).toMatchObject({
        status: 403,
      });
      expect(await ask('/prompt', { ...EMPTY_PROMPT, headers: origin })).toMatchObject({
        status: 403,
      });
    },
  );

  describe('may link to', () => {
    const ofMode = (mode: string, dest: string): string[] => [
      'Sec-Fetch-Site: cross-site',
      `Sec-Fetch-Mode: ${mode}`,
      `Sec-Fetch-Dest: ${dest}`,
    ];

    test('the start page, and to no other', async () => {
      const headers = ofMode('navigate', 'document');
      expect(await ask('/', { headers })).toMatchObject({ status: 200 });
      expect(await ask('/queue', { headers })).toMatchObject({ status: 403 });
      expect(await ask('/api/v2/assets/x/content', { headers })).toMatchObject({ status: 403 });
      expect(await ask('/', { headers, method: 'POST' })).toMatchObject({ status: 403 });
      expect(await ask('/', { headers: ofMode('navigate', 'iframe') })).toMatchObject({
        status: 403,
      });
    });

    describe.each([
      ['/view?filename=example.png&type=input', 200],
      // With a key it is a redirect to a signed link.
      ['/api/view?filename=example.png&type=input', 302],
      ['a signed link', 200],
      // The signature is checked, and refused.
      ['/api/v2/assets/x/content?signature=s', 404],
    ])('%s', (link, status) => {
      let target = link;
      beforeAll(async () => {
        if (link !== 'a signed link') return;
        const { headers } = await ask('/api/view?filename=example.png&type=input');
        target = headers['location'] ?? '';
      });

      test.each([
        ['navigate', 'document'],
        ['no-cors', 'image'],
        ['no-cors', 'video'],
        ['no-cors', 'audio'],
        // A media file that is opened by itself.
        ['navigate', 'video'],
      ])('by %s for a %s', async (mode, dest) => {
        const headers = [...ofMode(mode, dest), 'User-Agent: Mozilla/5.0'];
        expect(await ask(target, { headers })).toMatchObject({ status });
        expect(await ask(target, { headers, method: 'HEAD' })).toMatchObject({ status });
        expect(await ask(target, { headers, method: 'POST' })).toMatchObject({ status: 403 });
        const other = await ask('/queue', { headers });
        expect(JSON.parse(other.body)).toMatchObject({
          error: {
            type: 'cross_site_request',
            message: expect.stringContaining('--enable-cors-header'),
          },
        });
      });

      test.each([
        ['cors', 'image'],
        ['cors', 'empty'],
        ['no-cors', 'empty'],
        ['no-cors', 'script'],
        ['navigate', 'iframe'],
        ['websocket', 'websocket'],
      ])('not by %s for %s', async (mode, dest) => {
        expect(await ask(target, { headers: ofMode(mode, dest) })).toMatchObject({ status: 403 });
      });
    });
  });

  test('asking beforehand is 403 and is allowed nothing', async () => {
    const headers = ['Origin: https://evil', 'Access-Control-Request-Method: POST'];
    const answer = await ask('/prompt', { method: 'OPTIONS', headers });
    expect(answer).toMatchObject({ status: 403 });
    expect(answer.raw).not.toMatch(/access-control-allow/i);
  });

  test.each([
    ['https://evil', 403],
    ['null', 403],
    ['http://127.0.0.1.evil:8188', 403],
    [null, 101],
    ['http://127.0.0.1', 101],
    ['127.0.0.1', 101],
    ['file://', 101],
    ['file://evil', 403],
  ])('opening a socket with Origin %s is answered %i', async (origin, status) => {
    const wire = await dial(server.port);
    wire.send(upgradeText('/ws', { headers: { Origin: origin } }));
    const text = (await wire.received(12)).toString();
    wire.reset();
    expect(text).toContain(`HTTP/1.1 ${status} `);
  });
});

describe('a refusal says which rule it was, in the form of the API and in the log', () => {
  const CASES = [
    ['foreign_host', ['Host: evil.example']],
    ['foreign_origin', ['Host: 127.0.0.1:8188', 'Origin: https://evil']],
    ['opaque_origin', ['Host: 127.0.0.1:8188', 'Origin: null']],
    ['cross_site_request', ['Sec-Fetch-Site: cross-site']],
  ] as const;

  test.each(CASES)('%s', async (rule, headers) => {
    const options = { method: 'POST', body: '{}', headers };
    const [v1, v2, router] = [
      await ask('/prompt', options),
      await ask('/api/v2/jobs', options),
      await ask('/v1/models/local/digest', options),
    ];
    expect([v1.status, v2.status, router.status]).toEqual([403, 403, 403]);
    const { message } = JSON.parse(v1.body).error;
    expect(JSON.parse(v1.body)).toMatchObject({ error: { type: rule, message } });
    const error = { code: 'forbidden', message, details: { rule } };
    expect(JSON.parse(v2.body)).toEqual({ error });
    expect(JSON.parse(router.body)).toEqual({ detail: message, error_type: 'forbidden' });
    expect(message).toMatch(/^(Host|Origin) check: /);
    const lines = server
      .log()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual(
      expect.objectContaining({ event: 'request.refused', rule, status: 403 }),
    );
  });
});

describe('a script, or a page of ours', () => {
  test.each(['', '127.0.0.1:8188', 'localhost'])(
    'may send an origin without a scheme: %j',
    async (origin) => {
      const headers = ['Host: 127.0.0.1:8188', `Origin: ${origin}`];
      const { body } = await ask('/prompt', { ...EMPTY_PROMPT, headers });
      expect(JSON.parse(body)).toMatchObject({ error: { type: 'prompt_no_outputs' } });
    },
  );

  test('of an app that is loaded from files may post, whatever its browser says of the site', async () => {
    const headers = ['Origin: file://', 'Sec-Fetch-Site: cross-site', 'Sec-Fetch-Mode: no-cors'];
    const { body } = await ask('/prompt', { ...EMPTY_PROMPT, headers });
    expect(JSON.parse(body)).toMatchObject({ error: { type: 'prompt_no_outputs' } });
    const foreign = await ask('/queue', { headers: ['Host: evil.x', 'Origin: file://'] });
    expect(foreign).toMatchObject({ status: 403 });
  });

  test.each([
    'text/plain',
    'application/octet-stream',
    'application/x-www-form-urlencoded',
    undefined,
  ])('may label its JSON %s', async (type) => {
    const headers = type === undefined ? [] : [`Content-Type: ${type}`];
    const script = await ask('/prompt', { ...EMPTY_PROMPT, headers });
    expect(JSON.parse(script.body)).toMatchObject({ error: { type: 'prompt_no_outputs' } });
    const page = [...headers, 'Sec-Fetch-Site: same-origin', 'Origin: http://127.0.0.1'];
    const ours = await ask('/prompt', { ...EMPTY_PROMPT, headers: page });
    expect(JSON.parse(ours.body)).toMatchObject({ error: { type: 'prompt_no_outputs' } });
  });
});

test.each(['/interrupt', '/free', '/upload/image', '/upload/mask'])(
  'GET %s does nothing, with a 404 as on v1',
  async (path) => {
    expect(await ask(path)).toMatchObject({ status: 404 });
  },
);

describe('a target', () => {
  test.each([
    ['/../../etc/passwd', 404],
    ['//evil/x', 404],
    ['/;/x', 404],
    ['/view/..;/queue', 404],
    ['/queue/../queue', 404],
    ['/%2e%2e/%2e%2e/etc/passwd', 404],
    ['/internal/logs/../../etc/passwd', 404],
    ['/QUEUE', 404],
    ['/queue/', 404],
    ['/api/%70romp%74?x=%', 200],
    ['/%00', 400],
    ['/%ff%fe', 404],
    ['/%zz', 404],
    ['/history/%zz', 200],
    ['/api/v2/jobs/%zz', 404],
    ['/api/v2/internal/x', 404],
    ['/manager/queue/start', 404],
    ['http://evil/a', 400],
    ['https://127.0.0.1/queue', 400],
    ['http://127.0.0.1:1/queue', 400],
    ['http://127.0.0.1/queue', 200],
    ['ftp://127.0.0.1/queue', 400],
    ['evil', 400],
  ])('%s is answered %i', async (target, status) => {
    expect(await ask(target)).toMatchObject({ status });
  });

  test.each([
    '/internal/logs',
    '/internal/folder_paths',
    '/internal/files/output',
    '/users',
    '/experiment/models',
  ])('%s shows no path of this machine', async (path) => {
    const answer = await ask(path);
    expect(answer.raw).not.toContain(server.dataDir);
    expect(answer.raw).not.toMatch(/\/(home|root|tmp|work|usr)\//);
  });

  test.each(['TRACE', 'PROPFIND', 'DELETE', 'PATCH', 'PUT', 'LOCK'])(
    'of %s is 405',
    async (method) => {
      expect(await ask('/queue', { method })).toMatchObject({ status: 405 });
    },
  );

  test('of CONNECT is closed', async () => {
    const answer = await ask('evil.com:443', { method: 'CONNECT' });
    expect([0, 400, 405]).toContain(answer.status);
  });

  test.each(['FOO', 'get', 'G E T'])('of the method %s is 400', async (method) => {
    expect(await ask('/queue', { method })).toMatchObject({ status: 400 });
  });
});

describe('a header', () => {
  test.each([
    ['Trailer: x', 200],
    ['Trailer: x, transfer-encoding', 200],
    ['Connection: close, authorization, x-api-key', 200],
    ['X-HTTP-Method-Override: DELETE', 200],
    ['X-Original-URL: /interrupt', 200],
    ['X-Rewrite-URL: /interrupt', 200],
    ['Comfy-User: ../../other', 200],
    ['Accept-Encoding: br;q=NaN', 200],
    ['Range: bytes=0-0', 200],
    ['Cookie: a=b', 200],
    ['Transfer-Encoding: \x0bchunked', 400],
    ['Transfer-Encoding : chunked', 400],
    ['Transfer-Encoding: chunked\r\nContent-Length: 5', 400],
    ['Content-Length: +5', 400],
    ['X: a\r\n b', 400],
    ['X: a\0b', 400],
  ])('%s is answered %i', async (header, status) => {
    expect(await ask('/queue', { headers: [header] })).toMatchObject({ status });
  });

  test('that tries to speak for a proxy is not believed', async () => {
    const plain = await ask('/api/view?filename=nope.png');
    for (const header of [
      'X-Forwarded-Host: evil',
      'Forwarded: host=evil',
      'X-Forwarded-Proto: https',
    ]) {
      const answer = await ask('/api/view?filename=nope.png', { headers: [header] });
      expect(answer.status).toBe(plain.status);
      expect(answer.raw).not.toContain('evil');
    }
    const headers = ['Host: evil.com', 'X-Forwarded-Host: 127.0.0.1'];
    expect(await ask('/queue', { headers })).toMatchObject({ status: 403 });
  });

  test('X-Request-Id with a line of its own is not repeated', async () => {
    const answer = await ask('/queue', { headers: ['X-Request-Id: a\tb"<script>'] });
    expect(answer.headers['x-request-id']).toMatch(/^[\w-]+$/);
  });

  test('Expect: 100-continue is asked to go on and served', async () => {
    const wire = await dial(server.port);
    const body = '{"prompt":{}}';
    const headers = ['Expect: 100-continue', `Content-Length: ${body.length}`];
    wire.send(requestText('/prompt', { method: 'POST', headers }));
    expect((await wire.received(12)).toString()).toContain('100 Continue');
    wire.send(body);
    expect((await wire.answer()).raw).toContain('HTTP/1.1 400 Bad Request');
  });
});

test.each([
  'GET / HTTP/9.9\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  '\0\0\0\0\r\n\r\n',
  'GET /\r\n\r\n',
  'GET /é HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n',
])('bytes that are no request are refused: %j', async (bytes) => {
  const { status } = await say(server.port, bytes);
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(500);
});

test.each([
  ['of no version', 400, 'GET / HTTP/9.9\r\n\r\n'],
  ['of no known method', 400, 'FOO / HTTP/1.1\r\n\r\n'],
])(
  'the answer to a request %s has an id, and so has its line in the log: %i',
  async (_what, status, bytes) => {
    const answer = await say(server.port, bytes);
    const { 'x-request-id': id } = answer.headers;
    expect(answer).toMatchObject({
      status,
      body: '',
      headers: { connection: 'close', 'content-length': '0', 'x-content-type-options': 'nosniff' },
    });
    expect(id).toMatch(/^[\w-]{36}$/);
    const lines = () => server.log().trimEnd().split('\n');
    const lineOf = () => lines().find((text) => text.includes(`"id":"${id}"`)) ?? '{}';
    // The lines of a turn are written behind its answers.
    await expect
      .poll(() => JSON.parse(lineOf()) as unknown)
      .toMatchObject({
        event: 'request.unreadable',
        status,
        reason: expect.stringMatching(/^HPE_/),
      });
  },
);

test.each(['\r\nSet-Cookie: a=b', '\u001b[31mred', '\n{"level":60}'])(
  'what a target smuggles into the log stays one line: %j',
  async (text) => {
    await ask(`/history/${encodeURIComponent(text)}`, { headers: [`User-Agent: x`] });
    const lines = server.log().trimEnd().split('\n');
    for (const line of lines) expect(JSON.parse(line)).toHaveProperty('level');
    expect(server.log()).not.toContain('\u001b');
  },
);
