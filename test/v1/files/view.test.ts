import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type TestApp, NOW, createTestApp, place } from '../../support/app/v1-routes.ts';
import { blackPng } from '../../support/graphs/black-png.ts';
import { type Exchange, exchangesOf, recordedFile } from '../../support/golden/recordings.ts';

/** Recorded exchanges this project answers differently, by request, with the reason. */
const DIFFERENT: Readonly<Record<string, string>> = {
  '/view?type=input&filename=rgba.png&preview=webp;101': 'a clear 400 instead of 500',
  '/view?type=input&filename=doc.txt&preview=webp': 'a clear 400 instead of 500',
  '/view?type=input&filename=doc.txt&channel=rgb': 'a clear 400 instead of 500',
  '/view?type=input&filename=page.html': 'sent as an attachment',
  '/view?type=input&filename=s.js': 'forced to octet-stream',
  '/view?type=input&filename=x.svg': 'forced to octet-stream',
};

const RECORDED = exchangesOf('view');
const NAMES = RECORDED.map(
  (exchange, index) =>
    [`${index} ${exchange.request.method} ${exchange.request.path}`, exchange] as const,
);
const SAME = NAMES.filter(([, { request }]) => !(request.path in DIFFERENT));
const PICTURES = ['image/png', 'image/webp', 'image/jpeg'];

/** Headers whose recorded value is that of any server. */
const COMPARED = ['content-type', 'content-disposition', 'accept-ranges', 'content-range'];

/** Row `headers`: a 304 has no type. */
function comparedAt(status: number): readonly string[] {
  return status === 304 ? ['accept-ranges', 'content-range', 'content-disposition'] : COMPARED;
}

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
  const hash = `blake3:${'ab'.repeat(32)}`;
  for (const name of [
    'rgb.png',
    'rgba.png',
    'l.png',
    'doc.txt',
    'page.html',
    's.js',
    'x.svg',
    'w.latent',
    'v..2.png',
  ]) {
    await place(app, name, recordedFile(`view-input-${name}`), { hash });
  }
  await place(app, 'deep.png', recordedFile('view-input-sub_deep.png'), { subfolder: 'sub' });
});

afterAll(() => app.close());

/** The recorded validators are placeholders; ours are asked for first. */
async function headersFor(exchange: Exchange): Promise<Record<string, string>> {
  const { headers } = await app.ask(exchange.request.path);
  return Object.fromEntries(
    Object.entries(exchange.request.headers).map(([name, value]) => [
      name,
      value
        .replace('"<etag>"', headers.etag ?? '')
        .replace('<http-date>', headers['last-modified'] ?? ''),
    ]),
  );
}

async function pixels(bytes: Buffer): Promise<{ data: Buffer; size: string }> {
  const { data, info } = await sharp(bytes).raw().toBuffer({ resolveWithObject: true });
  return { data, size: `${info.width}x${info.height}x${info.channels}` };
}

function worst(a: Buffer, b: Buffer): number {
  return a.reduce((most, value, index) => Math.max(most, Math.abs(value - (b[index] ?? 999))), 0);
}

describe('/view answers as recorded', () => {
  test.each(SAME)('%s', async (_, exchange) => {
    const { request, response } = exchange;
    const { method } = request;
    const answer = await app.ask(request.path, { method, headers: await headersFor(exchange) });
    const recorded = Object.fromEntries(
      Object.entries(response.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    expect(answer.status).toBe(response.status);
    for (const name of comparedAt(response.status))
      expect(answer.headers[name], name).toBe(recorded[name]);
    expect('etag' in answer.headers).toBe('etag' in recorded);
    expect('last-modified' in answer.headers).toBe('last-modified' in recorded);
  });

  const bodies = SAME.filter(([, { response }]) => response.body_file?.endsWith('.bin') ?? false);
  test.each(bodies)('byte for byte: %s', async (_, { request, response }) => {
    const answer = await app.ask(request.path, { headers: request.headers });
    expect(answer.body).toEqual(recordedFile(response.body_file ?? ''));
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
  });

  const drawn = SAME.filter(
    ([, { response }]) =>
      response.status === 200 &&
      response.body_file !== undefined &&
      PICTURES.includes(response.headers['Content-Type'] ?? ''),
  );
  test.each(drawn)('the same picture: %s', async (_, { request, response }) => {
    const answer = await app.ask(request.path);
    const [ours, theirs] = [
      await pixels(answer.body),
      await pixels(recordedFile(response.body_file ?? '')),
    ];
    expect(ours.size).toBe(theirs.size);
    const lossy = response.headers['Content-Type'] !== 'image/png';
    expect(worst(ours.data, theirs.data)).toBeLessThanOrEqual(lossy ? 24 : 0);
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
  });
});

describe('/view differs from the original on purpose', () => {
  test.each(Object.entries(DIFFERENT).filter(([, why]) => why.includes('400')))(
    '%s: %s',
    async (path) => {
      const answer = await app.ask(path);
      expect(answer.status).toBe(400);
      expect(JSON.parse(answer.body.toString())).toMatchObject({
        error: { message: expect.any(String) },
        node_errors: {},
      });
    },
  );

  test.each(['page.html', 's.js', 'x.svg'])(
    'what a browser could run is saved, not shown: %s',
    async (name) => {
      const { headers } = await app.ask(`/view?type=input&filename=${name}`);
      expect(headers['content-type']).toBe('application/octet-stream');
      expect(headers['content-disposition']).toBe(`attachment; filename="${name}"`);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['cache-control']).toBe('no-store');
      expect(headers.vary).toMatch(/Sec-Fetch-Dest/i);
    },
  );

  test.each([
    ['image', 'image/svg+xml'],
    ['document', 'application/octet-stream'],
  ])('an SVG asked for as %s is %s', async (dest, type) => {
    const { headers } = await app.ask('/view?type=input&filename=x.svg', {
      headers: { 'Sec-Fetch-Dest': dest },
    });
    expect(headers['content-type']).toBe(type);
  });
});

describe('/view refuses what it should', () => {
  test.each([
    ['filename=../../etc/passwd', 400],
    ['filename=..%2f..%2f', 400],
    ['filename=..\\..\\', 400],
    ['filename=....//', 400],
    ['filename=%2e%2e/', 400],
    ['filename=C:\\x', 400],
    ['filename=\\\\host\\share', 400],
    ['filename=file:///etc/passwd', 400],
    ['filename=a.png&subfolder=../..', 403],
    ['filename=a.png&subfolder=/etc', 403],
    ['filename=a.png&subfolder=..\\b', 403],
    ['filename=%252e%252e%252f', 404],
    ['filename=%00', 400],
    ['filename=a%0ab', 400],
    ['filename=a%e2%80%aeb', 400],
    ['filename=%ED%A0%80', 400],
    ['filename=%C0%AF', 400],
    ['filename=%zz', 400],
    ['filename=CON', 400],
    [`filename=${'a'.repeat(10_240)}`, 400],
    ['filename=.', 400],
    ['filename=..', 400],
    ['filename=rgb.png&type=../input', 400],
    ['filename=rgb.png&type=foo', 400],
    ['filename=rgb.png&type=', 400],
    ['filename=x.png%20[foo]', 404],
    ['filename=rgb.png&filename=/etc/passwd&type=input&type=output', 200],
    ['', 404],
  ])('%s → %i', async (query, status) => {
    const answer = await app.ask(`/view?${query}`);
    expect(answer.status).toBe(status);
    expect(status === 200 || answer.body.length === 0).toBe(true);
  });

  test('a file whose asset is gone upstream is an empty 404', async () => {
    app.assets.lose(await place(app, 'gone.png', 'x'));
    const answer = await app.ask('/view?type=input&filename=gone.png');
    expect([answer.status, answer.body.length, answer.headers.etag]).toEqual([404, 0, undefined]);
  });

  test('a picture of more than 64 megapixels is not decoded', async () => {
    await place(app, 'bomb.png', blackPng(16_000, 5_000));
    const answer = await app.ask('/view?type=input&filename=bomb.png&preview=webp;90');
    expect(answer.status).toBe(400);
  });

  test.each(['<svg xmlns="http://www.w3.org/2000/svg"/>', 'GIF89a cut off', ''])(
    'what only looks like a picture cannot be previewed: %s',
    async (text) => {
      await place(app, 'fake.png', text);
      expect((await app.ask('/view?type=input&filename=fake.png&preview=webp')).status).toBe(400);
    },
  );
});

describe('/view serves', () => {
  test.each([
    ['bytes=0-0', 206, 'bytes 0-0/10'],
    ['bytes=-99', 206, 'bytes 0-9/10'],
    ['bytes=-0', 416, 'bytes */10'],
    ['bytes=9-1', 416, 'bytes */10'],
    ['bytes=99999999999-', 416, 'bytes */10'],
    ['bytes=0-1,3-4', 416, 'bytes */10'],
    ['bytes=abc', 416, 'bytes */10'],
    ['bytes=-', 416, 'bytes */10'],
    ['items=0-1', 416, 'bytes */10'],
  ])('Range %s → %i', async (range, status, contentRange) => {
    const answer = await app.ask('/view?type=input&filename=doc.txt', {
      headers: { Range: range },
    });
    expect([answer.status, answer.headers['content-range']]).toEqual([status, contentRange]);
  });

  test.each([
    [{ 'If-Match': '"another"' }, 412],
    [{ 'If-Match': '*' }, 200],
    [{ 'If-Unmodified-Since': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 412],
    [{ 'If-Unmodified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, 200],
    [{ 'If-Unmodified-Since': 'no date' }, 200],
  ])('%j → %i', async (headers, status) => {
    const answer = await app.ask('/view?type=input&filename=doc.txt', { headers });
    expect(answer.status).toBe(status);
    if (status === 200) {
      const matching = { 'If-Match': String(answer.headers['etag']) };
      const again = await app.ask('/view?type=input&filename=doc.txt', { headers: matching });
      expect(again.status).toBe(200);
    }
  });

  test('nothing slower for 15,000 blanks in If-Match', async () => {
    const headers = { 'If-Match': `"a"${' '.repeat(15_000)}"b"` };
    const startedAt = process.cpuUsage();
    const answer = await app.ask('/view?type=input&filename=doc.txt', { headers });
    expect(answer.status).toBe(412);
    expect(process.cpuUsage(startedAt).user).toBeLessThan(200_000);
  });

  test('the whole file when If-Range names another version', async () => {
    const headers = { Range: 'bytes=0-0', 'If-Range': '"another"' };
    expect((await app.ask('/view?type=input&filename=doc.txt', { headers })).status).toBe(200);
  });

  test.each([
    ['猫.png', 'filename="猫.png"'],
    ['a"b.png', 'filename="a\\"b.png"'],
    ['a;b.png', 'filename="a;b.png"'],
    ['a%0d%0aX: y.png', 'filename="a%0d%0aX: y.png"'],
  ])('%s under a name no header can be broken with', async (name, disposition) => {
    await place(app, name, 'x');
    const answer = await app.ask(`/view?type=input&filename=${encodeURIComponent(name)}`);
    const bytes = Buffer.from(String(answer.headers['content-disposition']), 'latin1');
    expect(bytes.toString()).toBe(disposition);
  });

  test.each([
    ['A.png', 'upper'],
    ['a.png', 'lower'],
    ['e\u0301.png', 'decomposed'],
    ['\u00e9.png', 'composed'],
    ['100%.png', 'unencoded percent'],
  ])('%s exactly as it was named (%s)', async (name, content) => {
    await place(app, name, content);
    const answer = await app.ask(
      `/view?type=input&filename=${name === '100%.png' ? name : encodeURIComponent(name)}`,
    );
    expect(answer.body.toString()).toBe(content);
  });

  test('a file by the hash of its bytes', async () => {
    const hash = `blake3:${'c'.repeat(64)}`;
    await place(app, 'hashed.txt', 'by hash', { hash, type: 'temp' });
    const answer = await app.ask(`/view?filename=${hash}`);
    expect([answer.status, answer.body.toString()]).toEqual([200, 'by hash']);
    expect((await app.ask(`/view?filename=${hash}`, { user: 'other' })).status).toBe(404);
  });

  test('HEAD of a picture drawn anew with the length GET has', async () => {
    const path = '/view?type=input&filename=rgba.png&channel=a';
    const [head, get] = [await app.ask(path, { method: 'HEAD' }), await app.ask(path)];
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(head.headers['content-length']).toBe(get.headers['content-length']);
  });
});

describe('/api/view with --view auto', () => {
  const path = '/api/view?type=input&filename=rgb.png';
  let auto: TestApp;
  beforeAll(async () => {
    auto = await createTestApp({ view: 'auto' });
    await place(auto, 'rgb.png', recordedFile('view-input-rgb.png'), { user: 'ann' });
    await place(auto, 'rgb.png', 'not hers');
  });
  afterAll(() => auto.close());

  async function link(query = ''): Promise<URL> {
    const answer = await auto.ask(path + query, {
      user: 'ann',
      headers: { 'X-API-Key': 'sk-secret' },
    });
    expect([answer.status, answer.body.length]).toEqual([302, 0]);
    return new URL(String(answer.headers.location));
  }

  test('answers 302 to an absolute link on the same host that holds no credential', async () => {
    const target = await link();
    expect(target.origin).toBe(auto.url);
    expect(target.href).not.toContain('sk-secret');
    expect(target.searchParams.get('filename')).toBe('rgb.png');
  });

  test('whose link serves the bytes without and with any credential, ranges included', async () => {
    const { pathname, search } = await link();
    for (const user of ['local', 'unknown']) {
      const answer = await auto.ask(pathname + search, { user });
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual(recordedFile('view-input-rgb.png'));
    }
    const part = await auto.ask(pathname + search, { headers: { Range: 'bytes=0-9' } });
    expect([part.status, part.body.length]).toEqual([206, 10]);
    expect((await auto.ask(pathname + search, { method: 'HEAD' })).headers['content-length']).toBe(
      '2396',
    );
  });

  test('whose link keeps preview and channel', async () => {
    const { pathname, search } = await link('&preview=jpeg;80&rand=0.1');
    expect((await auto.ask(pathname + search)).headers['content-type']).toBe('image/jpeg');
  });

  test('whose link is 403 when its time is over', async () => {
    const { pathname, search } = await link();
    auto.clock.now = NOW + 10 * 60_000;
    const late = await auto.ask(pathname + search);
    auto.clock.now = NOW;
    expect(late.status).toBe(403);
    expect((await auto.ask(pathname + search)).status).toBe(200);
  });

  test('answers 404 before it would redirect to nothing', async () => {
    expect((await auto.ask('/api/view?filename=never.png')).status).toBe(404);
  });

  test.each([
    ['Sec-Fetch-Site', 'same-origin', 200],
    ['Sec-Fetch-Dest', 'image', 200],
    ['Comfy-User', '', 200],
    /** Node's `fetch` sends this one alone; the scripts that demand a 302 run on it. */
    ['Sec-Fetch-Mode', 'cors', 302],
  ])('tells browsers from scripts: %s: %s → %i', async (name, value, status) => {
    const answer = await auto.ask(path, { user: 'ann', headers: { [name]: value } });
    expect(answer.status).toBe(status);
  });

  test('streams without the prefix', async () => {
    expect((await auto.ask(path.slice(4), { user: 'ann' })).status).toBe(200);
  });
});

test.each([
  ['redirect', '/view', 302],
  ['redirect', '/api/view', 302],
  ['stream', '/api/view', 200],
] as const)('--view %s: %s answers %i', async (view, path, status) => {
  const one = await createTestApp({ view });
  await place(one, 'x.txt', 'x');
  const answer = await one.ask(`${path}?type=input&filename=x.txt`, {
    headers: { 'Sec-Fetch-Site': 'same-origin' },
  });
  await one.close();
  expect(answer.status).toBe(status);
});

test('relays the link of an upstream that keeps its files elsewhere', async () => {
  const one = await createTestApp();
  const location = 'https://storage.example/x?signature=1';
  one.assets.content = async () => ({ ok: true, value: { kind: 'redirect', location } });
  await place(one, 'x.txt', 'x');
  const answer = await one.ask('/view?type=input&filename=x.txt');
  await one.close();
  expect([answer.status, answer.headers.location]).toEqual([302, location]);
});
