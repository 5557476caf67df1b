// v1 says of itself that it ends; nothing else does.
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { entryOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { postPrompt } from '../support/clients/v1-client.ts';
import { v2Client } from '../support/clients/v2-client.ts';
import { flat, growing } from '../support/graphs/workflows.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

/** The machine may be busy. */
const PATIENTLY = { timeout: 30_000 };
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let holdover: Holdover;
afterAll(() => holdover.dispose());

/** The head of the answer to an attempt to open a socket. */
async function upgradeHead(url: string, headers: Record<string, string> = {}) {
  const socket = new WebSocket(url, { headers });
  const [response] = await Promise.race([
    once(socket, 'upgrade'),
    once(socket, 'unexpected-response').then(([, answer]) => [answer]),
  ]);
  socket.on('error', () => {});
  socket.terminate();
  return response as { statusCode: number; headers: Record<string, string> };
}

describe('with a date of its end', () => {
  beforeAll(async () => {
    holdover = await startHoldover({
      upstream: 'embedded',
      args: ['--sunset', '2027-03-31', '--enable-cors-header'],
    });
    return () => holdover.dispose();
  });

  const DATES = { deprecation: '@1787270400', sunset: 'Wed, 31 Mar 2027 00:00:00 GMT' };
  const said = (headers: Headers) =>
    Object.fromEntries(
      ['deprecation', 'sunset', 'link'].map((name) => [name, headers.get(name) ?? undefined]),
    );
  const linkTo = (path: string) => `<${path}>; rel="successor-version"`;

  test.each([
    ['GET', '/queue', 200, '/api/v2/jobs'],
    ['HEAD', '/api/queue', 200, '/api/v2/jobs'],
    ['POST', '/prompt', 400, '/api/v2/jobs'],
    ['GET', '/history/a%20b', 200, '/api/v2/jobs/a%20b'],
    ['GET', '/api/job/unknown/status', 404, '/api/v2/jobs/unknown'],
    ['POST', '/api/jobs/x/cancel', 200, '/api/v2/jobs/x/cancel'],
    ['POST', '/upload/image', 400, '/api/v2/assets'],
    [
      'HEAD',
      `/api/assets/hash/blake3:${'0'.repeat(64)}`,
      404,
      `/api/v2/assets/by-hash/blake3%3A${'0'.repeat(64)}`,
    ],
    ['GET', '/system_stats', 200, '/api/v2/health'],
    ['GET', '/object_info', 200, undefined],
    ['GET', '/api/v2/userdata', 200, undefined],
    ['GET', '/view?filename=none.png', 404, undefined],
    ['GET', '/ws', 400, undefined],
  ] as const)('%s %s (%i) says so, and names %s', async (method, path, status, v2Path) => {
    const answer = await fetch(holdover.url + path, { method });
    expect(answer.status).toBe(status);
    const link = v2Path && linkTo(v2Path);
    expect(said(answer.headers)).toEqual({ ...DATES, link });
  });

  test.each([
    ['GET', '/'],
    ['GET', '/holdover/page.js'],
    ['GET', '/healthz'],
    ['GET', '/readyz'],
    ['GET', '/api/v2/health'],
    ['GET', '/api/v2/jobs'],
    ['POST', '/api/v2/jobs'],
    ['GET', '/v1/models'],
    ['GET', '/nowhere'],
    ['OPTIONS', '/prompt'],
    ['DELETE', '/prompt'],
  ])('%s %s says nothing of it', async (method, path) => {
    const { headers } = await fetch(holdover.url + path, { method });
    expect(said(headers)).toEqual({ deprecation: undefined, sunset: undefined, link: undefined });
  });

  test('pages of other origins may read it', async () => {
    const { headers } = await fetch(`${holdover.url}/queue`);
    const exposed = (headers.get('access-control-expose-headers') ?? '').split(', ');
    expect(exposed).toEqual(expect.arrayContaining(['Deprecation', 'Sunset', 'Link']));
  });

  test.each([
    ['a socket that opens', '/ws?clientId=a', 101],
    ['one that is refused', `/ws?clientId=${'x'.repeat(500)}`, 400],
  ])('%s hears of it', async (_what, path, status) => {
    const { statusCode, headers } = await upgradeHead(holdover.wsUrl + path);
    expect([statusCode, headers]).toEqual([status, expect.objectContaining(DATES)]);
  });
});

describe('in a brownout of one client', () => {
  const untilMs = Date.now() + 3_600_000;
  const until = new Date(untilMs).toISOString();
  const old = { 'User-Agent': 'old-script/1.0' };

  beforeAll(async () => {
    holdover = await startHoldover({
      upstream: 'embedded',
      args: [
        '--brownout',
        `from=2026-01-01,to=${until},client=OLD-script`,
        '--brownout',
        'delay-ms=700,client=slow-script',
      ],
    });
    return () => holdover.dispose();
  });

  test('its calls are 503 in v1’s words, with the end of the window and the way out', async () => {
    const answer = await fetch(`${holdover.url}/prompt`, {
      method: 'POST',
      headers: old,
      body: JSON.stringify({ prompt: flat() }),
    });
    expect(answer.status).toBe(503);
    const wait = Number(answer.headers.get('retry-after'));
    expect(wait).toBeGreaterThan(3000);
    expect(wait).toBeLessThanOrEqual(3600);
    expect(answer.headers.get('link')).toContain('/api/v2/jobs');
    const body: any = await answer.json();
    expect(body).toMatchObject({
      error: { type: 'brownout', message: expect.stringContaining(until) },
      node_errors: {},
    });
    expect(body.error.message).toContain('POST /api/v2/jobs');
    expect((await fetch(`${holdover.url}/history`)).status).toBe(200);
    expect(await (await fetch(`${holdover.url}/history`)).json()).toEqual({});
  });

  test('its sockets are refused before they open, those of others open', async () => {
    const refused = await upgradeHead(`${holdover.wsUrl}/ws`, old);
    expect([refused.statusCode, Number(refused.headers['retry-after'])]).toEqual([
      503,
      expect.any(Number),
    ]);
    expect((await upgradeHead(`${holdover.wsUrl}/ws`)).statusCode).toBe(101);
  });

  test.each(['/', '/holdover/page.js', '/healthz', '/readyz', '/api/v2/health', '/api/v2/jobs'])(
    '%s is answered all the same',
    async (path) => {
      expect((await fetch(holdover.url + path, { headers: old })).status).toBe(200);
    },
  );

  test('Holdover’s own page is not meant', async () => {
    const page = { ...old, 'Holdover-Page': '1' };
    expect((await fetch(`${holdover.url}/api/jobs`, { headers: page })).status).toBe(200);
    for (const query of ['watch=1', 'sample=1'])
      expect((await upgradeHead(`${holdover.wsUrl}/ws?${query}`, old)).statusCode).toBe(101);
  });

  test('it goes on through v2, and what it does there is seen in v1', async () => {
    const { body: job } = await v2Client(holdover.url, old).submit(flat({ color: 77 }));
    await expect.poll(() => entryOf(holdover.url, job.id), PATIENTLY).toBeDefined();
  });

  test('calls are held up, and then answered as ever', async () => {
    const from = performance.now();
    const answer = await fetch(`${holdover.url}/queue`, {
      headers: { 'User-Agent': 'slow-script' },
    });
    expect(performance.now() - from).toBeGreaterThanOrEqual(690);
    expect(answer.status).toBe(200);
    expect(Object.keys((await answer.json()) as object)).toEqual([
      'queue_running',
      'queue_pending',
    ]);
  });
});

test('a prompt that was accepted before a brownout runs to its end', async () => {
  const dataDir = await runFolder('brownout');
  holdover = await startHoldover({ upstream: 'embedded', dataDir });
  const { body } = await postPrompt(holdover.url, { prompt: growing({ steps: 60, side: 128 }) });
  await holdover.terminate();
  holdover = await startHoldover({
    upstream: 'embedded',
    dataDir,
    args: ['--brownout', 'percent=100'],
  });
  expect((await fetch(`${holdover.url}/queue`)).status).toBe(503);
  const id = body.prompt_id as string;
  const status = async () => (await v2Client(holdover.url).job(id)).body.status;
  await expect.poll(status, { timeout: 40_000 }).toBe('succeeded');
  const page = { 'Holdover-Page': '1' };
  await expect
    .poll(async () => (await entryOf(holdover.url, id, page))?.status.status_str, PATIENTLY)
    .toBe('success');
});
