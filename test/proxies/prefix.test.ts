// Below a path prefix, whether the proxy takes it off or leaves it on.
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { connect } from '../support/clients/v1-client.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const start = (...args: string[]) => startHoldover({ args, upstream: 'embedded' });

let published: Holdover;
let named: Holdover;
let trusting: Holdover;
let bare: Holdover;
beforeAll(async () => {
  [published, named, trusting, bare] = await Promise.all([
    start('--public-url', 'https://comfy.example.com/comfy'),
    // The prefix people think of first is a path of Holdover's own too.
    start('--public-url', 'https://comfy.example.com/holdover'),
    start('--trust-proxy', 'loopback'),
    start(),
  ]);
});
afterAll(() => Promise.all([published, named, trusting, bare].map((server) => server.dispose())));

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
