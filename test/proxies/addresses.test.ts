// Behind a proxy: --allowed-hosts, --public-url, --trust-proxy, forged headers, and a path prefix, which the proxy takes
// off or leaves on.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { call } from '../support/clients/raw-call.ts';
import { connect } from '../support/clients/v1-client.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const start = (...args: string[]) => startHoldover({ args, upstream: 'embedded' });

let bare: Holdover;
let allowing: Holdover;
let published: Holdover;
let named: Holdover;
let trusting: Holdover;
let distrusting: Holdover;
beforeAll(async () => {
  [bare, allowing, published, named, trusting, distrusting] = await Promise.all([
    start(),
    start('--allowed-hosts', 'comfy.example.com', 'other.example:8443', '.lan.example'),
    start('--public-url', 'https://comfy.example.com/comfy'),
    // The prefix people think of first is a path of Holdover's own too.
    start('--public-url', 'https://comfy.example.com/holdover'),
    start('--trust-proxy', 'loopback', '--allowed-hosts', 'comfy.example.com'),
    start('--trust-proxy', '192.0.2.1', '--allowed-hosts', 'comfy.example.com'),
  ]);
});
afterAll(() =>
  Promise.all(
    [bare, allowing, published, named, trusting, distrusting].map((server) => server.dispose()),
  ),
);

type Headers = Record<string, string>;
const statusOf = async (server: Holdover, headers: Headers, method = 'GET') =>
  (await call(server.url, '/queue', { method, headers, ...(method === 'POST' && { body: '{}' }) }))
    .status;
const ruleOf = async (server: Holdover, headers: Headers) =>
  JSON.parse((await call(server.url, '/queue', { headers })).text).error.type;
const upgradeStatus = (server: Holdover, headers: Headers) =>
  new Promise<number | undefined>((resolve) => {
    const socket = new WebSocket(`${server.wsUrl}/ws`, { headers });
    socket.once('unexpected-response', (request, answer) => {
      request.destroy();
      resolve(answer.statusCode);
    });
    socket.on('error', () => {});
    socket.once('open', () => {
      socket.terminate();
      resolve(101);
    });
  });

describe('--allowed-hosts', () => {
  test.each([
    ['comfy.example.com', 200],
    ['comfy.example.com:8443', 200],
    ['COMFY.example.com.', 200],
    ['other.example:8443', 200],
    ['other.example', 403],
    ['other.example:8444', 403],
    ['lan.example', 200],
    ['deep.in.lan.example:81', 200],
    ['evillan.example', 403],
    ['comfy.example.com.evil.example', 403],
    ['sub.comfy.example.com', 403],
    ['localhost', 200],
    ['127.0.0.1:8188', 200],
    ['192.168.0.1', 403],
  ])('Host: %s is answered %i', async (Host, status) => {
    expect(await statusOf(allowing, { Host })).toBe(status);
  });

  test('without it such a host is refused, and the refusal names the setting', async () => {
    const answer = await call(bare.url, '/queue', { headers: { Host: 'comfy.example.com' } });
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('--allowed-hosts')]);
  });

  test('a page of an allowed host that is called by it may call; a page of a sibling may not', async () => {
    const Host = 'a.lan.example';
    expect(await statusOf(allowing, { Host, Origin: 'https://a.lan.example' }, 'POST')).toBe(200);
    expect(await statusOf(allowing, { Host, Origin: 'https://b.lan.example' }, 'POST')).toBe(403);
    expect(await upgradeStatus(allowing, { Host, Origin: 'https://a.lan.example' })).toBe(101);
    expect(await upgradeStatus(allowing, { Host, Origin: 'https://b.lan.example' })).toBe(403);
  });

  test('checks hosts beyond loopback too, once it is given', async () => {
    const args = ['--listen', '0.0.0.0', '--local-token', 'token'];
    const [open, checked] = await Promise.all([
      start(...args),
      start(...args, '--allowed-hosts', 'comfy.example.com'),
    ]);
    const headers = { Host: 'evil.example', Authorization: 'Bearer token' };
    const local = (server: Holdover) => ({ ...server, url: `http://127.0.0.1:${server.port}` });
    expect(await statusOf(local(open), headers)).toBe(200);
    expect(await statusOf(local(checked), headers)).toBe(403);
    // A probe of Kubernetes names the address of the pod.
    expect(await statusOf(local(checked), { ...headers, Host: '10.0.0.9:8188' })).toBe(200);
    expect(await statusOf(local(checked), { ...headers, Host: 'comfy.example.com' })).toBe(200);
    await Promise.all([open.dispose(), checked.dispose()]);
  });
});

describe('--public-url', () => {
  test('allows its host and its origin, whatever Host says', async () => {
    const Origin = 'https://comfy.example.com';
    expect(await statusOf(published, { Host: 'comfy.example.com' })).toBe(200);
    expect(await statusOf(published, { Origin }, 'POST')).toBe(200);
    expect(await upgradeStatus(published, { Host: 'localhost', Origin })).toBe(101);
    expect(await statusOf(bare, { Origin }, 'POST')).toBe(403);
  });

  test.each(['http://comfy.example.com', 'https://comfy.example.com:9443', 'https://example.com'])(
    'not %s',
    async (Origin) => {
      expect(await ruleOf(published, { Origin })).toBe('foreign_origin');
    },
  );
});

describe('--trust-proxy', () => {
  const Host = '127.0.0.1';
  const forwarded = (host: string) => ({ Host, 'X-Forwarded-Host': host });

  test('pages are those of the host the proxy was called by', async () => {
    const headers = forwarded('comfy.example.com');
    const Origin = 'https://comfy.example.com';
    expect(await statusOf(trusting, { ...headers, Origin }, 'POST')).toBe(200);
    expect(await upgradeStatus(trusting, { ...headers, Origin })).toBe(101);
    expect(await ruleOf(trusting, { ...headers, Origin: 'http://127.0.0.1' })).toBe(
      'foreign_origin',
    );
  });

  test('the host the proxy was called by must be allowed as well', async () => {
    expect(await ruleOf(trusting, forwarded('rebound.example'))).toBe('foreign_host');
    expect(await ruleOf(trusting, forwarded('a/b'))).toBe('invalid_host');
    expect(await ruleOf(trusting, { Host, Forwarded: 'host=rebound.example' })).toBe(
      'foreign_host',
    );
  });

  // A page of a name that leads to 127.0.0.1 is of our origin to its browser: it sends what it likes.
  test.each(['localhost', 'comfy.example.com', '127.0.0.1:8188'])(
    'a rebound name is refused whatever it forges (X-Forwarded-Host: %s)',
    async (forged) => {
      const headers = {
        Host: 'rebound.example:8188',
        Origin: `http://${forged}`,
        'X-Forwarded-Host': forged,
        Forwarded: `host="${forged}"`,
      };
      for (const server of [bare, trusting, distrusting, published]) {
        expect(await ruleOf(server, headers)).toBe('foreign_host');
        expect(await upgradeStatus(server, headers)).toBe(403);
      }
    },
  );

  test('a peer that is not trusted gains nothing by headers', async () => {
    const headers = { ...forwarded('comfy.example.com'), Origin: 'https://comfy.example.com' };
    for (const server of [bare, distrusting]) {
      expect(await ruleOf(server, headers)).toBe('foreign_origin');
      expect(await statusOf(server, forwarded('rebound.example'))).toBe(200);
    }
  });

  test('the log has the client of a trusted proxy, and of no other peer', async () => {
    const headers = { 'X-Forwarded-For': '203.0.113.77' };
    await statusOf(trusting, { ...headers, Host: 'evil.example' });
    for (const server of [trusting, distrusting]) {
      for (const path of ['/queue', '/system_stats', '/api/v2/health']) {
        await call(server.url, path, { headers });
      }
    }
    const lines = (log: string) =>
      log.split('\n').flatMap((line) => {
        const { client, url, event } = line.startsWith('{') ? JSON.parse(line) : {};
        return client === undefined ? [] : [`${client} ${url ?? event}`];
      });
    expect(lines(trusting.log())).toEqual(
      expect.arrayContaining([
        '203.0.113.77 request.refused',
        '203.0.113.77 /queue',
        '203.0.113.77 /system_stats',
        '203.0.113.77 /api/v2/health',
      ]),
    );
    expect(distrusting.log()).not.toContain('203.0.113.77');
  });
});

const get = (server: Holdover, path: string, headers: Record<string, string> = {}) =>
  call(server.url, path, { headers });

describe('a prefix that is left on', () => {
  test.each([
    '/comfy/queue',
    '/comfy/api/queue',
    '/comfy/api/v2/jobs',
    '/comfy/healthz',
    '/comfy/holdover/page.js',
    '/comfy/',
  ])('%s is served', async (path) => {
    expect((await get(published, path)).status).toBe(200);
    expect((await get(bare, path)).status).toBe(404);
  });

  test.each(['/comfyx/queue', '/comfy/comfy/queue', '/Comfy/queue'])('%s is not', async (path) => {
    expect((await get(published, path)).status).toBe(404);
  });

  test('the socket is there', async () => {
    const socket = await connect(published.wsUrl, { path: '/comfy/ws' });
    await socket.until((frame) => frame.kind === 'text' && frame.type === 'status');
    await socket.close();
  });

  test('the prefix alone lacks its slash', async () => {
    const answer = await get(published, '/comfy?theme=dark');
    expect([answer.status, answer.headers.location]).toEqual([302, '/comfy/?theme=dark']);
    const posted = await call(published.url, '/comfy', { method: 'POST', body: '' });
    expect(posted.status).toBe((await call(bare.url, '/', { method: 'POST', body: '' })).status);
  });

  test('a trusted proxy may name it', async () => {
    const headers = { 'X-Forwarded-Prefix': '/deep/comfy' };
    expect((await get(trusting, '/deep/comfy/queue', headers)).status).toBe(200);
    expect((await get(trusting, '/deep/comfy/queue')).status).toBe(404);
    // A path of Holdover's own is never taken for a prefix.
    const api = { 'X-Forwarded-Prefix': '/api' };
    expect((await get(trusting, '/api/v2/jobs', api)).status).toBe(200);
    expect((await get(bare, '/deep/comfy/queue', headers)).status).toBe(404);
  });
});

describe('a prefix that is taken off', () => {
  test.each(['/queue', '/api/queue', '/api/v2/jobs', '/healthz', '/holdover/page.js', '/'])(
    '%s is served',
    async (path) => {
      expect((await get(published, path)).status).toBe(200);
    },
  );
});

test.each(['', '/holdover'])(
  'below /holdover the page and the API are served, with %j in front',
  async (prefix) => {
    const paths = ['/', '/queue', '/holdover/page.js', '/holdover/api/session', '/holdover'];
    for (const path of paths) expect((await get(named, prefix + path)).status).toBe(200);
    // Both of the page, whichever of the two was meant.
    expect((await get(named, '/holdover')).text).toContain('Holdover is running');
  },
);

test.each([
  ['/', '/comfy/holdover/page.js'],
  ['/holdover', '/comfy/holdover/page.js'],
])('the page at %s names its files from the root', async (path, file) => {
  for (const asked of [path, `/comfy${path}`]) {
    expect((await get(published, asked)).text).toContain(`src="${file}"`);
  }
  expect((await get(bare, path)).text).toContain('src="holdover/page.js"');
});

test('without settings links are what they were', async () => {
  const headers = { 'X-Forwarded-Prefix': '/comfy', 'X-Forwarded-Proto': 'https' };
  const { headers: answered } = await get(bare, '/queue', headers);
  expect(answered.link).toBe('</api/v2/jobs>; rel="successor-version"');
  expect((await get(bare, '/', headers)).text).toContain(`<code>${bare.url}</code>`);
});
