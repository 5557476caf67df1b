// Small calls and all others go upstream in two ways; no client can tell which one a call went.
import { once } from 'node:events';
import { request } from 'node:http';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Holdover, startHoldover } from '../../support/processes/holdover.ts';
import { dial, requestText, say } from '../../support/clients/raw-socket.ts';
import { expectHealthy } from '../../support/processes/expect-healthy.ts';
import { type Echoed, type Origin, bytes, openBehindOrigin } from './origin.ts';

let origin: Origin;
let holdover: Holdover;
let close: () => Promise<void>;

beforeAll(async () => void ({ origin, holdover, close } = await openBehindOrigin()));
afterAll(() => close());
afterEach(() => expectHealthy(holdover));

/** The headers that make a call go one way or the other. */
const SMALL: readonly string[] = [];
const FLOWING: readonly string[] = ['Accept: text/event-stream'];

const METHODS: readonly (readonly [string, string])[] = [
  ['GET', ''],
  ['DELETE', ''],
  ['POST', ''],
  ['POST', '{"seed": 18446744073709551615}'],
  ['PATCH', 'x'.repeat(60_000)],
  ['PUT', 'x'.repeat(70_000)],
];

test('there are two ways', async () => {
  const firstName = async (headers: readonly string[]): Promise<string | undefined> => {
    const answer = await say(holdover.port, requestText('/api/v2/echo', { headers }));
    return (JSON.parse(answer.body) as Echoed).rawHeaders[0];
  };
  expect(await firstName(SMALL)).not.toBe(await firstName(FLOWING));
});

describe.each([
  ['small', SMALL],
  ['flowing', FLOWING],
] as const)('%s', (way, headers) => {
  const ask = (path: string, options: Parameters<typeof requestText>[1] = {}) =>
    say(
      holdover.port,
      requestText(`/api/v2${path}`, {
        ...options,
        headers: [...headers, ...(options.headers ?? [])],
      }),
    );

  test.each(METHODS)('%s goes as it is', async (method, body) => {
    const answer = await ask('/echo?a=%2F', { method, body, headers: ['X-T: 1', 'X-T: 2'] });
    const sent = JSON.parse(answer.body) as Echoed;
    expect(sent).toMatchObject({ method, url: '/api/v2/echo?a=%2F', body });
    const lines = sent.rawHeaders.join().toLowerCase();
    expect(lines).toContain('x-t,1,x-t,2');
    expect(lines).not.toContain('transfer-encoding');
    if (body !== '') expect(lines).toContain(`content-length,${body.length}`);
  });

  test('what every answer of ours carries is there, unless the service says it', async () => {
    origin.on('/says', (_req, res) => {
      const theirs = { 'X-Content-Type-Options': 'theirs', 'Cache-Control': 'public' };
      res.writeHead(200, { ...theirs, 'Content-Length': 0 }).end();
    });
    const named = { headers: ['X-Request-Id: asked-1'] };
    const { headers } = await ask('/echo', named);
    expect(headers).toMatchObject({
      'x-request-id': 'asked-1',
      'x-content-type-options': 'nosniff',
      'content-security-policy': expect.stringContaining('sandbox'),
      'cache-control': 'private, no-store',
    });
    expect((await ask('/says', named)).headers).toMatchObject({
      'x-content-type-options': 'theirs',
      'cache-control': 'public',
    });
  });

  test('it is in the log and in the counts, without the key it came with', async () => {
    const path = `/echo/${way}?token=never-shown`;
    await ask(path, { method: 'POST', body: '{}', headers: ['X-API-Key: never-shown'] });
    const line = () =>
      holdover
        .log()
        .split('\n')
        .find((text) => text.includes(`/echo/${way}?`));
    await expect.poll(line).toMatch(/"user":"[0-9a-f]{32}","method":"POST".*"status":200/);
    expect(holdover.log()).not.toContain('never-shown');
    const counted = (text: string): number =>
      Number(
        /requests_total\{method="POST",route="\/api\/v2\/\*",outcome="2xx"\} (\d+)/.exec(text)?.[1],
      );
    const metrics = await (await fetch(`${holdover.url}/metrics`)).text();
    expect(counted(metrics)).toBeGreaterThan(0);
  });

  test.each([
    ['another site', 'Origin: http://elsewhere.example', 403],
    ['another name of this machine', 'Host: elsewhere.example', 403],
  ])('%s is refused', async (_, header, status) => {
    const heardBefore = origin.heard.length;
    const answer = await ask('/echo', { method: 'POST', body: '{}', headers: [header] });
    expect(answer.status).toBe(status);
    expect(origin.heard).toHaveLength(heardBefore);
  });

  test('an empty body that is announced is announced', async () => {
    const answer = await ask('/echo', { method: 'DELETE', headers: ['Content-Length: 0'] });
    expect(answer.body.toLowerCase()).toContain('"content-length","0"');
  });

  test('HEAD learns the length of what is not sent', async () => {
    origin.on(`/${way}-head`, bytes('HTTP/1.1 200 OK', 'Content-Length: 9', '', ''));
    const answer = await ask(`/${way}-head`, { method: 'HEAD' });
    expect([answer.headers['content-length'], answer.body]).toEqual(['9', '']);
  });

  test('HEAD is answered by a service that sends a body, too', async () => {
    origin.on(`/${way}-headless`, bytes('HTTP/1.1 404 Not Found', 'Content-Length: 2', '', '{}'));
    const answer = await ask(`/${way}-headless`, { method: 'HEAD' });
    expect([answer.status, answer.headers['content-length'], answer.body]).toEqual([404, '2', '']);
  });

  test.each([
    ['304 with a length', ['HTTP/1.1 304 Not Modified', 'Content-Length: 99', 'ETag: "x"', '', '']],
    ['204', ['HTTP/1.1 204 No Content', 'ETag: "x"', '', '']],
  ] as [string, [string, ...string[]]][])('a %s is whole', async (_what, lines) => {
    origin.on(`/${way}-empty`, bytes(...lines));
    const answer = await ask(`/${way}-empty`);
    expect([answer.status, answer.headers['etag'], answer.body]).toEqual([
      Number(lines[0].split(' ')[1]),
      '"x"',
      '',
    ]);
  });

  test('lines, chunks and trailers', async () => {
    origin.on(
      `/${way}-lines`,
      bytes(
        'HTTP/1.1 201 Made It',
        'Link: <a>',
        'Link: <b>',
        'X-Latin: \xe9',
        'Trailer: X-Sum',
        'Transfer-Encoding: chunked',
        '',
        '3',
        'abc',
        '0',
        'X-Sum: 1',
        '',
        '',
      ),
    );
    const { raw, body } = await ask(`/${way}-lines`);
    expect(raw).toMatch(/^HTTP\/1\.1 201 Made It\r\n/);
    expect(raw).toContain('Link: <a>\r\nLink: <b>\r\nX-Latin: \xe9\r\n');
    expect(raw).not.toMatch(/x-sum/i);
    expect(body).toBe('abc');
  });

  test.each([
    ['UTF-8', Buffer.from('\u56fe\xe4')],
    ['Latin-1', Buffer.from([0xe4])],
  ])('the name of a file is the bytes it was: %s', async (_coding, name) => {
    const value = name.toString('latin1');
    const disposition = `Content-Disposition: attachment; filename="${value}"`;
    const length = 'Content-Length: 4';
    origin.on(`/${way}-named`, bytes('HTTP/1.1 200 OK', length, disposition, '', 'body'));
    const { raw, status, body } = await ask(`/${way}-named`);
    expect([status, body]).toEqual([200, 'body']);
    expect(raw).toContain(`${disposition}\r\n`);
    expect(raw.match(/content-length/gi)).toHaveLength(1);
  });

  test.each([
    ['UTF-8', Buffer.from('Gr\xfc\xdfe'), /^HTTP\/1\.1 200 Gr\xc3\xbc\xc3\x9fe\r\n/],
    ['Latin-1', Buffer.from([0xe9]), /^HTTP\/1\.1 200 (OK|\xe9)\r\n/],
  ])('words beside the status in %s cost no answer', async (_coding, words, first) => {
    const line = `HTTP/1.1 200 ${words.toString('latin1')}`;
    origin.on(`/${way}-words`, bytes(line, 'Content-Length: 4', '', 'body'));
    const { raw, body } = await ask(`/${way}-words`);
    expect(raw).toMatch(first);
    expect(body).toBe('body');
  });

  test('compressed bytes stay compressed', async () => {
    const packed = gzipSync('text '.repeat(50_000));
    origin.on(`/${way}-packed`, (_req, res) => {
      res.writeHead(200, { 'Content-Encoding': 'gzip', 'Content-Length': packed.length });
      res.end(packed);
    });
    const accept = headers.length > 0 ? { Accept: 'text/event-stream' } : {};
    const call = request(`${holdover.url}/api/v2/${way}-packed`, { headers: accept }).end();
    const [answer] = await once(call, 'response');
    expect(gunzipSync(Buffer.concat(await answer.toArray())).length).toBe(250_000);
  });

  test('what comes piece by piece is sent on piece by piece', async () => {
    let next: (() => void) | undefined;
    origin.on(`/${way}-pieces`, async (_req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/plain' }).flushHeaders();
      for (const piece of ['one', 'two', 'three']) {
        await new Promise<void>((resolve) => (next = resolve));
        res.write(piece);
      }
      res.end();
    });
    const wire = await dial(holdover.port);
    wire.send(requestText(`/api/v2/${way}-pieces`, { headers }));
    await wire.until('\r\n\r\n');
    for (const piece of ['one', 'two', 'three']) {
      next?.();
      await wire.until(piece);
    }
    expect((await wire.answer()).raw).toMatch(/\r\n0\r\n\r\n$/);
  });

  test('an answer that lasts until its connection ends is whole when it ends, cut when it is reset', async () => {
    const start = 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart';
    origin.on(`/${way}-ends`, (req) => void req.socket.end(start));
    origin.on(`/${way}-reset`, (req) => {
      req.socket.write(start);
      setTimeout(() => req.socket.resetAndDestroy(), 100);
    });
    expect((await ask(`/${way}-ends`)).raw).toMatch(/part\r\n0\r\n\r\n$/);
    const cut = await ask(`/${way}-reset`);
    expect(cut.raw).toContain('part');
    expect(cut.raw).not.toMatch(/\r\n0\r\n/);
  });

  test.each([
    ['resets', (socket: { resetAndDestroy(): unknown }) => void socket.resetAndDestroy()],
    ['says nothing', () => {}],
  ])('a service that %s is 500, and is not asked again', async (what, act) => {
    origin.on(`/${way}-${what.replace(' ', '-')}`, (req) => act(req.socket));
    const before = origin.heard.length;
    const answer = await ask(`/${way}-${what.replace(' ', '-')}`, { method: 'POST', body: '{}' });
    expect(answer.status).toBe(500);
    expect(origin.heard.length).toBe(before + 1);
  });

  test('a client that leaves takes its call along', async () => {
    const lost = new Promise((resolve) => {
      origin.on(`/${way}-left`, (req) => void req.socket.once('close', resolve));
    });
    const wire = await dial(holdover.port);
    const before = origin.heard.length;
    wire.send(requestText(`/api/v2/${way}-left`, { method: 'POST', headers, body: '{}' }));
    await expect.poll(() => origin.heard.length).toBe(before + 1);
    wire.reset();
    await lost;
  });
});

test('where no server listens both ways say so', async () => {
  const args = ['--upstream', 'http://[::1]:9'];
  const alone = await startHoldover({ upstream: 'embedded', args });
  try {
    for (const headers of [SMALL, FLOWING]) {
      const text = requestText('/api/v2/jobs', { method: 'POST', headers, body: '{}' });
      expect((await say(alone.port, text)).status).toBe(500);
    }
  } finally {
    await alone.dispose();
  }
});
