import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toPythonText } from '../../src/protocol/python-json-text.ts';
import { type Called, call } from '../support/clients/raw-call.ts';
import { type Holdover, runHoldover, startHoldover } from '../support/processes/holdover.ts';
import {
  NOT_OF_PAGE,
  OUTSIDE,
  SCRIPT,
  type WebRoot,
  makeWebRoot,
} from '../support/browser/web-root.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

let web: WebRoot;
let holdover: Holdover;

beforeAll(async () => {
  web = await makeWebRoot();
  holdover = await startHoldover({ args: ['--front-end-root', web.root], upstream: 'embedded' });
});
afterAll(async () => {
  await holdover.dispose();
  await web.dispose();
});

const get = (path: string, headers: Record<string, string> = {}): Promise<Called> =>
  call(holdover.url, path, { headers });

const IMMUTABLE = 'public, max-age=31536000, immutable';

describe('a mounted front end', () => {
  test.each([
    ['/', 'text/html; charset=utf-8', 'no-cache'],
    ['/api/', 'text/html; charset=utf-8', 'no-cache'],
    ['/index.html', 'text/html; charset=utf-8', 'no-cache'],
    ['/assets/index-B2rHQ9Sn.js', 'text/javascript; charset=utf-8', IMMUTABLE],
    ['/assets/index-B2rHQ9Sn.css', 'text/css; charset=utf-8', IMMUTABLE],
    ['/assets/default-workflow.json', 'application/json; charset=utf-8', 'no-cache'],
    ['/assets/logo.svg', 'image/svg+xml', 'no-cache'],
    ['/assets/font.woff2', 'font/woff2', 'no-cache'],
    ['/assets/module.wasm', 'application/wasm', 'no-cache'],
    ['/assets/picture.png', 'image/png', 'public, max-age=86400'],
    ['/extensions/core/clipspace.js', 'text/javascript; charset=utf-8', 'no-cache'],
    ['/templates/flux.json', 'application/json; charset=utf-8', 'no-cache'],
    ['/docs/KSampler/en.md', 'text/markdown; charset=utf-8', 'no-cache'],
    ['/docs/inside/default-workflow.json', 'application/json; charset=utf-8', 'no-cache'],
    ['/name%20with%20blank.txt', 'text/plain; charset=utf-8', 'no-cache'],
  ])('serves %s as %s, kept %s', async (path, type, caching) => {
    const answer = await get(path);
    expect([answer.status, answer.reason]).toEqual([200, 'OK']);
    expect(answer.headers).toMatchObject({ 'content-type': type, 'cache-control': caching });
    expect(answer.headers['x-content-type-options']).toBe('nosniff');
    expect(answer.headers.etag).toMatch(/^"[\w-]+"$/);
    const head = await call(holdover.url, path, { method: 'HEAD' });
    expect([head.status, head.headers['content-length'], head.body.length]).toEqual([
      200,
      String(answer.body.length),
      0,
    ]);
  });

  test('lists the scripts of /extensions, and serves each', async () => {
    const listed = JSON.parse((await get('/extensions')).text) as string[];
    expect(listed).toEqual([
      '/extensions/core/clipspace.js',
      '/extensions/pack/web/deep.js',
      '/extensions/holdover/starter-graph.js',
    ]);
    for (const path of listed) expect((await get(path)).status).toBe(200);
    expect((await get('/api/extensions')).text).toBe(toPythonText(JSON.stringify(listed)));
  });

  test.each([['/user.css', '']])(
    'answers %s, which pages always ask for, although it has none',
    async (path, text) => {
      expect(await get(path)).toMatchObject({ status: 200, text });
    },
  );

  test.each([
    ['/queue', '{"queue_running": [], "queue_pending": []}'],
    ['/api/settings', '{}'],
  ])('leaves %s to the API', async (path, text) => {
    await web.write(path.slice(1), 'a file');
    expect(await get(path)).toMatchObject({ status: 200, text });
  });

  test.each([
    '/nope',
    '/assets',
    '/assets/',
    '/nope.js',
    '/api/nope',
    '/index.html/',
    ...NOT_OF_PAGE,
  ])('answers %s in the v1 manner: an empty 404', async (path) =>
    expect(await get(path)).toMatchObject({ status: 404, text: '' }),
  );

  test('takes no POST for a file', async () => {
    const answer = await call(holdover.url, '/index.html', { method: 'POST' });
    expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET,HEAD' } });
  });

  test('notices a new build of itself', async () => {
    await web.write('changing.js', 'one');
    const before = await get('/changing.js');
    await web.write('changing.js', 'another');
    const after = await get('/changing.js', { 'If-None-Match': before.headers.etag ?? '' });
    expect(after).toMatchObject({ status: 200, text: 'another' });
  });

  test('has Holdover’s own page at /holdover', async () => {
    const answer = await get('/holdover');
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('Holdover is running');
    expect((await get('/')).text).toContain('stub');
  });
});

describe('what the client has or can unpack is not sent in full', () => {
  test.each(['identity', 'gzip', 'br'])('%s: an unchanged file is 304', async (coding) => {
    const path = '/assets/index-B2rHQ9Sn.js';
    const first = await get(path, { 'Accept-Encoding': coding });
    const again = { 'Accept-Encoding': coding, 'If-None-Match': first.headers.etag ?? '' };
    const second = await get(path, again);
    expect([second.status, second.reason, second.body.length]).toEqual([304, 'Not Modified', 0]);
    expect(second.headers.etag).toBe(first.headers.etag);
    expect(second.headers['cache-control']).toBe(IMMUTABLE);
  });

  test.each(['identity', 'gzip'])('%s: also to `fetch`, which says no-cache', async (coding) => {
    const path = '/assets/index-B2rHQ9Sn.js';
    const headers = { 'Accept-Encoding': coding };
    const etag = (await get(path, headers)).headers.etag ?? '';
    const conditions = { ...headers, 'If-None-Match': etag, 'Cache-Control': 'no-cache' };
    expect((await get(path, conditions)).status).toBe(304);
  });

  test('each form has its own ETag, and says what it depends on', async () => {
    const codings = ['identity', 'gzip', 'br'];
    const answers = await Promise.all(
      codings.map((coding) => get('/assets/index-B2rHQ9Sn.js', { 'Accept-Encoding': coding })),
    );
    expect(new Set(answers.map(({ headers }) => headers.etag)).size).toBe(3);
    expect(answers.map(({ headers }) => headers.vary)).toEqual(
      codings.map(() => 'Accept-Encoding'),
    );
  });

  const unpack = { gzip: gunzipSync, br: brotliDecompressSync };
  test.each([
    ['gzip', 'gzip'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip', 'gzip'],
  ] as const)('Accept-Encoding: %s gets %s', async (header, coding) => {
    const answer = await get('/assets/index-B2rHQ9Sn.js', { 'Accept-Encoding': header });
    expect(answer.headers['content-encoding']).toBe(coding);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
    expect(answer.body.length).toBeLessThan(SCRIPT.length / 2);
    expect(unpack[coding](answer.body).toString()).toBe(SCRIPT);
  });

  test.each([
    ['/assets/font.woff2', 'gzip, br'],
    ['/assets/picture.png', 'gzip, br'],
    ['/assets/index-B2rHQ9Sn.css', 'gzip, br'],
    ['/assets/index-B2rHQ9Sn.js', 'deflate'],
    ['/assets/index-B2rHQ9Sn.js', ''],
  ])('%s for Accept-Encoding: %s travels as it is', async (path, coding) => {
    const answer = await get(path, { 'Accept-Encoding': coding });
    expect([answer.status, answer.headers['content-encoding']]).toEqual([200, undefined]);
  });

  test('a range is one of the file itself', async () => {
    const headers = { Range: 'bytes=0-9', 'Accept-Encoding': 'gzip' };
    const answer = await get('/assets/index-B2rHQ9Sn.js', headers);
    const part = { status: 206, reason: 'Partial Content', text: SCRIPT.slice(0, 10) };
    expect(answer).toMatchObject(part);
    expect(answer.headers['content-range']).toBe(`bytes 0-9/${SCRIPT.length}`);
    const beyond = await get('/assets/index-B2rHQ9Sn.js', { Range: 'bytes=999999-' });
    expect(beyond).toMatchObject({ status: 416, reason: 'Range Not Satisfiable', text: '' });
  });
});

describe('no path leaves the root', () => {
  test.each([
    '/link.txt',
    '/up/secret.txt',
    '/up/static/index.html/../../secret.txt',
    '/assets/sibling/secret.txt',
    '/loop',
    '/loop/x',
    '/../secret.txt',
    '/assets/../../secret.txt',
    '/%2e%2e/secret.txt',
    '/%2e%2e%2fsecret.txt',
    '/..%2fsecret.txt',
    '/assets%2f..%2f..%2fsecret.txt',
    '/assets%2Findex-B2rHQ9Sn.js',
    '/..%5csecret.txt',
    '/..\\secret.txt',
    '/%252e%252e%252fsecret.txt',
    '/static-not/secret.txt',
    '/../static-not/secret.txt',
    '/%2fetc%2fpasswd',
    '//etc/passwd',
    '/./index.html',
    '/assets//index-B2rHQ9Sn.js',
    '/.env',
    '/.git/config',
    '/%2eenv',
    '/%ff',
    '/%c0%ae%c0%ae/secret.txt',
  ])('%s is not there', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(404);
    expect(answer.text).not.toContain(OUTSIDE);
  });

  test.each(['/index.html%00', '/%00', '/link.txt%00.html'])(
    '%s names no file: it has a control character',
    async (path) => {
      const answer = await get(path);
      expect(answer.status).toBe(400);
      expect(answer.text).not.toContain(OUTSIDE);
    },
  );

  test.each([
    ['300 characters', `/${'a'.repeat(300)}`],
    ['3000 folders', `/${'a/'.repeat(3000)}x`],
  ])('a name of %s is not there', async (_, path) => {
    expect((await get(path)).status).toBe(404);
  });
});

test('a browser that opens a page is asked for the token, a script is not', async () => {
  const locked = await startHoldover({
    args: ['--front-end-root', web.root, '--local-token', 's3cret'],
    upstream: 'embedded',
  });
  const rows = [
    [{ Accept: 'text/html,*/*', 'Sec-Fetch-Mode': 'navigate' }, /^Basic realm="Holdover"/],
    [{ Accept: 'text/html,*/*' }, /^Basic realm="Holdover"/],
    [{ Accept: '*/*', 'Sec-Fetch-Mode': 'cors' }, /^Bearer$/],
  ] as const;
  for (const [headers, challenge] of rows) {
    const refused = await call(locked.url, '/', { headers });
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toMatch(challenge);
    const Authorization = `Basic ${Buffer.from('anybody:s3cret').toString('base64')}`;
    const opened = await call(locked.url, '/', { headers: { ...headers, Authorization } });
    expect(opened.status).toBe(200);
  }
  await locked.dispose();
});

test('a folder without an index.html is refused in one line', async () => {
  const empty = await runFolder('empty');
  const { code, stdout, stderr } = await runHoldover(['--front-end-root', empty]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toBe(
    `error: option '--front-end-root' needs a folder with an index.html, not '${empty}'\n`,
  );
});
