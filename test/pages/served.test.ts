import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { NOT_OF_PAGE } from '../support/browser/web-root.ts';
import { call } from '../support/clients/raw-call.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Recorder, connect } from '../support/clients/v1-client.ts';
import { flat, growing, streaming } from '../support/graphs/workflows.ts';

const TOKEN = 'token-of-the-server';

let bare: Holdover;
let keyed: Holdover;
let front: Holdover;
beforeAll(async () => {
  const start = (...args: string[]) => startHoldover({ args, upstream: 'embedded' });
  [bare, keyed] = await Promise.all([start(), start('--local-token', TOKEN)]);
  const upstream = ['--upstream', `${bare.url}/mount-secret`];
  front = await start(...upstream, '--listen', '0.0.0.0', '--allow-insecure-bind');
});
afterAll(() => Promise.all([bare, keyed, front].map((holdover) => holdover.dispose())));

const holdoverOf = { bare: () => bare, keyed: () => keyed };

describe("Holdover's own page", () => {
  test.each([
    ['bare', '/'],
    ['bare', '/api/'],
    ['bare', '/holdover'],
    ['keyed', '/'],
  ] as const)('is there without a key (%s server, %s)', async (name, path) => {
    const { status, headers, text } = await call(holdoverOf[name]().url, path);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(text).toContain('Holdover is running');
    expect(text).not.toMatch(/\{\{|token-of-the-server/);
  });

  test('comes with nothing of a front end', async () => {
    for (const path of ['/index.html', '/user.css'])
      expect((await call(bare.url, path)).status).toBe(404);
    expect(await call(bare.url, '/extensions')).toMatchObject({ status: 200, text: '[]' });
  });

  test('says how to point a client here, without a script too', async () => {
    const { text } = await call(bare.url, '/');
    for (const line of [bare.url, `${bare.url}/api/v2`]) expect(text).toContain(line);
    const session = await call(bare.url, '/holdover/api/session');
    expect(JSON.parse(session.text)).toMatchObject({ upstream: 'embedded', address: bare.url });
  });

  test('names the upstream by its origin, whatever its address carries', async () => {
    const { text } = await call(front.url, '/holdover/api/session');
    const page = await call(front.url, '/');
    expect(JSON.parse(text)).toMatchObject({ upstream: bare.url });
    expect(text + page.text).not.toContain('mount');
  });

  test.each(['/', '/holdover/page.js'])('%s lets nothing in from elsewhere', async (path) => {
    const { headers } = await call(bare.url, path);
    const policy = String(headers['content-security-policy']).split('; ');
    expect(policy).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'"]),
    );
    expect(policy.join()).not.toMatch(/unsafe|https?:|\*/);
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('has no script or style of its own that the policy would forbid', async () => {
    const { text } = await call(bare.url, '/');
    expect(text).not.toMatch(/<style|<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=|javascript:/i);
    expect(text).not.toMatch(/(src|href)="(https?:)?\/\//);
  });

  test('shows a host it was called by as text', async () => {
    const url = `http://127.0.0.1:${front.port}`;
    const { status, text } = await call(url, '/', { headers: { Host: `a"b'c&d` } });
    expect(status).toBe(200);
    expect(text).toContain('http://a&#34;b&#39;c&#38;d/api/v2');
  });

  test('answers HEAD without a body', async () => {
    expect(await call(bare.url, '/', { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });
});

describe('what the page is made of', () => {
  const TYPES = { js: 'text/javascript', css: 'text/css', svg: 'image/svg+xml' } as const;

  /** Everything the page loads, and what that loads when a part of it is opened. */
  async function parts(): Promise<string[]> {
    const found = new Set(['/']);
    for (const path of found) {
      const { text } = await call(keyed.url, path);
      const names = [
        ...text.matchAll(
          /(?:href="|src="|from"|import\(`|import"|")(?:holdover|\.)\/([\w.-]+\.\w+)["`]/g,
        ),
      ];
      for (const [, name] of names) found.add(`/holdover/${name}`);
    }
    return [...found].filter((path) => path !== '/');
  }

  test('loads less than 60 KB at first, compressed', async () => {
    const headers = { 'Accept-Encoding': 'br' };
    const seen = new Set(['/', '/holdover/page.css', '/holdover/page.js', '/holdover/icon.svg']);
    let bytes = 0;
    for (const path of seen) {
      const answer = await fetch(keyed.url + path, { headers });
      bytes += Number(answer.headers.get('content-length'));
      const text = await answer.text();
      // Those of `import(…)` are loaded later.
      for (const [, name] of text.matchAll(/(?:from|import)"\.\/([\w.-]+\.js)"/g))
        seen.add(`/holdover/${name}`);
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(60_000);
  });

  test('is served with its type, without a key', async () => {
    const paths = await parts();
    expect(paths.length).toBeGreaterThan(5);
    for (const path of paths) {
      const { status, headers, text } = await call(keyed.url, path);
      const type = TYPES[path.split('.').at(-1) as keyof typeof TYPES];
      expect([path, status, headers['content-type']]).toEqual([
        path,
        200,
        expect.stringContaining(type),
      ]);
      expect(text).not.toMatch(/insertAdjacentHTML|document\.write|eval\(/);
    }
  });

  test.each(['/', '/holdover/page.js', '/holdover/page.css'])(
    '%s is asked about each time and sent again only when it differs',
    async (path) => {
      const { headers } = await call(bare.url, path);
      expect(headers['cache-control']).toBe('no-cache');
      const etag = { 'If-None-Match': String(headers.etag) };
      // `fetch` says it with every condition.
      const again = { headers: { ...etag, 'Cache-Control': 'no-cache' } };
      expect(await call(bare.url, path, again)).toMatchObject({ status: 304, text: '' });
      const other = { headers: { 'If-None-Match': '"another"' } };
      expect((await call(bare.url, path, other)).status).toBe(200);
    },
  );

  test.each(NOT_OF_PAGE)('%s is not there', async (path) => {
    expect(await call(bare.url, path)).toMatchObject({ status: 404, text: '' });
  });

  test('takes no other method', async () => {
    expect((await call(bare.url, '/holdover/page.js', { method: 'POST' })).status).toBe(405);
  });
});

async function submit(body: object, key = ''): Promise<string> {
  const answer = await fetch(`${bare.url}/prompt`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
    body: JSON.stringify(body),
  });
  return ((await answer.json()) as { prompt_id: string }).prompt_id;
}

function watch(key?: string): Promise<Recorder> {
  const headers = key === undefined ? {} : { 'X-API-Key': key };
  return connect(bare.wsUrl, { clientId: null, query: 'watch=1', headers });
}

describe('/ws?watch=1', () => {
  test('sees what is said to any client of its user, pictures too', async () => {
    const watcher = await watch();
    const id = await submit({ prompt: growing(), client_id: 'another' });
    await watcher.untilDone(id);
    const seen = watcher.outline(id).join(' ');
    expect(seen).toMatch(/execution_start.*executing:1.*progress.*executed:9.*execution_success/);
    expect(watcher.outline()).toContain('binary:1');
    await watcher.close();
  });

  test('sees nothing of other users', async () => {
    const [watcher, theirs] = [await watch('one-key'), await watch('other-key')];
    const id = await submit({ prompt: flat(), client_id: 'another' }, 'other-key');
    await theirs.untilDone(id);
    expect(watcher.outline(id)).toEqual([]);
    await Promise.all([watcher.close(), theirs.close()]);
  });

  test.each([
    [{ client_id: 'late' }, ''],
    [{}, 'token=late-key'],
  ])('takes nothing away from a client that comes later (%j %s)', async (whose, query) => {
    const headers = { 'X-API-Key': 'late-key' };
    const watcher = await watch('late-key');
    const id = await submit({ prompt: streaming(), ...whose }, 'late-key');
    await watcher.untilDone(id);
    const client = await connect(bare.wsUrl, { clientId: 'late', query, headers });
    await client.untilDone(id);
    expect(client.outline()).toContain('binary:1');
    await Promise.all([watcher.close(), client.close()]);
  });
});
