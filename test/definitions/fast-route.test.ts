// `GET /object_info` is answered before the framework; with a query it goes the long way.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Called, call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { scrape } from '../support/processes/scrape.ts';

const SHORT = ['/object_info', '/api/object_info'];
const long = (path: string) => `${path}?long=1`;

/** All that is the same whenever it is said. */
function said({ status, headers, body }: Called) {
  const { date: _, 'x-request-id': id, ...rest } = headers;
  return { status, rest, body, hasId: id !== undefined };
}

async function upload(url: string, name: string, key: string): Promise<void> {
  const form = new FormData();
  form.set('image', new Blob([name]), name);
  const headers = { 'X-API-Key': key };
  const answer = await fetch(`${url}/upload/image`, { method: 'POST', body: form, headers });
  expect(answer.status).toBe(200);
}

describe('/object_info answers the same either way', () => {
  let holdover: Holdover;
  let etag: string;
  beforeAll(async () => {
    holdover = await startHoldover({ upstream: 'embedded' });
    await upload(holdover.url, 'of-ann.png', 'ann');
    etag = (await call(holdover.url, '/object_info')).headers.etag ?? '';
  });
  afterAll(() => holdover?.dispose());

  const calls: readonly (readonly [string, () => Record<string, string>, number])[] = [
    ['as it is', () => ({}), 200],
    ['gzip', () => ({ 'Accept-Encoding': 'gzip' }), 200],
    ['brotli', () => ({ 'Accept-Encoding': 'gzip, deflate, br' }), 200],
    ['what it has', () => ({ 'If-None-Match': etag }), 304],
    ['what it has, packed', () => ({ 'If-None-Match': etag, 'Accept-Encoding': 'gzip' }), 304],
    ['something else', () => ({ 'If-None-Match': '"other"' }), 200],
    ['a new answer', () => ({ 'Cache-Control': 'no-cache', 'If-None-Match': etag }), 304],
    ['for a user with files', () => ({ 'X-API-Key': 'ann' }), 200],
    ['from its own page', () => ({ 'Holdover-Page': '1' }), 200],
    ['from a foreign page', () => ({ Origin: 'http://elsewhere.example' }), 403],
    ['in a foreign name', () => ({ Host: 'elsewhere.example' }), 403],
  ];
  test.each(calls)('to a client that asks for it: %s', async (_, headersOf, status) => {
    const headers = headersOf();
    for (const path of SHORT) {
      const slow = await call(holdover.url, long(path), { headers });
      const quick = await call(holdover.url, path, { headers });
      expect(slow.status).toBe(status);
      expect(said(quick)).toEqual(said(slow));
    }
  });

  test('with the files of the caller, and of no other user', async () => {
    const of = async (key: string) =>
      (await call(holdover.url, '/object_info', { headers: { 'X-API-Key': key } })).text;
    expect(await of('ann')).toContain('of-ann.png');
    expect(await of('bob')).not.toContain('of-ann.png');
    await upload(holdover.url, 'of-bob.png', 'bob');
    expect(await of('bob')).toContain('of-bob.png');
  });

  test('it is logged and counted like any other call', async () => {
    const headers = { 'X-Request-Id': 'quick-1', 'X-API-Key': 'ann' };
    const series = 'holdover_http_requests_total{method="GET",route="/object_info",outcome="2xx"}';
    const before = (await scrape(holdover.url)).of(series);
    const answer = await call(holdover.url, '/object_info', { headers });
    expect(answer.headers['x-request-id']).toBe('quick-1');
    await call(holdover.url, long('/object_info'), {
      headers: { ...headers, 'X-Request-Id': 'slow-1' },
    });
    await expect.poll(async () => (await scrape(holdover.url)).of(series)).toBe(before + 2);
    const [quick, slow] = ['quick-1', 'slow-1'].map((id) => lineOf(holdover, id));
    const { time: _, ms: _ms, id: _id, url, ...rest } = quick ?? {};
    expect(url).toBe('/object_info');
    expect(slow).toMatchObject(rest);
  });
});

function lineOf(holdover: Holdover, id: string): Record<string, unknown> | undefined {
  const line = holdover
    .log()
    .split('\n')
    .find((text) => text.includes(`"${id}"`));
  return line === undefined ? undefined : (JSON.parse(line) as Record<string, unknown>);
}

test('who has no key where one is needed hears so', async () => {
  const holdover = await startHoldover({ args: ['--local-token', 'secret'], upstream: 'embedded' });
  try {
    const refused = await call(holdover.url, '/object_info');
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([401, 'Bearer']);
    const headers = { Authorization: 'Bearer secret' };
    expect((await call(holdover.url, '/object_info', { headers })).status).toBe(200);
  } finally {
    await holdover.dispose();
  }
});

test('a brownout reaches it', async () => {
  const soon = new Date(Date.now() + 60_000).toISOString();
  const past = new Date(Date.now() - 60_000).toISOString();
  const args = ['--brownout', `from=${past},to=${soon}`];
  const holdover = await startHoldover({ args, upstream: 'embedded' });
  try {
    expect((await call(holdover.url, '/object_info')).status).toBe(503);
  } finally {
    await holdover.dispose();
  }
});
