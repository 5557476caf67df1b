import { once } from 'node:events';
import { type ServerResponse, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from 'vitest';
import { pngOf, uploadInput } from '../support/clients/client-helpers.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { fault } from '../support/upstreams/hostile-v2.ts';
import {
  type FileRef,
  madeOutputs,
  usePair,
  viewQuery,
} from '../support/processes/holdover-before-hostile.ts';
import {
  type StorageHost,
  breakAfter,
  openStorageHost,
  sendFile,
} from '../support/upstreams/storage-host.ts';

// A real server in front of an upstream that redirects to a storage host, or sends bytes itself.

vi.setConfig({ testTimeout: 30_000, hookTimeout: 30_000 });

const KEY = 'comfyui-canary-key';
const mine = { 'X-API-Key': KEY };
const BYTES = Buffer.from('0123456789');

const pair = usePair();
let storage: StorageHost;
/** Its size is known. */
let input: Partial<FileRef>;
/** Its upstream says 0. */
let output: Partial<FileRef>;

beforeAll(async () => {
  storage = await openStorageHost();
  const uploaded = await uploadInput(pair.holdover.url, { bytes: BYTES, name: 'known.png' }, mine);
  input = { filename: uploaded.name, type: 'input' };
  const made = await madeOutputs(pair, [{ id: 'sizeless', size_bytes: 0 }], mine);
  [output = {}] = made.files;
});
afterAll(() => storage.close());
beforeEach(() => {
  storage.reset();
  storage.files.clear();
  pair.upstream.journal.length = 0;
  sends(BYTES);
});

/** The upstream sends the bytes itself. */
function sends(bytes: Buffer): void {
  pair.upstream.always('content', ({ req, res }) => sendFile(res, { headers: req.headers, bytes }));
}

/** The upstream answers with a link that is a new one every time. */
function links(bytes: Buffer = BYTES, path = '/bucket/file'): void {
  storage.files.set(path, bytes);
  let count = 0;
  pair.upstream.always('content', ({ res }) =>
    res.writeHead(302, { Location: `${storage.url}${path}?signature=s${(count += 1)}` }).end(),
  );
}

function linksTo(location: string): void {
  pair.upstream.always('content', ({ res }) => res.writeHead(302, { Location: location }).end());
}

type Ask = { readonly headers?: Record<string, string>; readonly method?: string };

function view(file: Partial<FileRef>, { headers = {}, ...more }: Ask = {}): Promise<Response> {
  const url = `${pair.holdover.url}/view?${viewQuery(file)}`;
  return fetch(url, { redirect: 'manual', headers: { ...mine, ...headers }, ...more });
}

/** As scripts call it that were written for a hosted service. */
function apiView(file: Partial<FileRef>, more: Record<string, string> = {}): Promise<Answer> {
  const query = new URLSearchParams({ ...file, ...more } as Record<string, string>).toString();
  return plain(`${pair.holdover.url}/api/view?${query}`, mine);
}

type Answer = { readonly status: number; readonly location: string; readonly text: string };

/** Node's `fetch` hides nothing else, but says where it comes from. */
async function plain(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  const request = get(url, { headers });
  const [response] = await once(request, 'response');
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  return { status: response.statusCode, location: response.headers.location ?? '', text };
}

const contentCalls = (): number => pair.upstream.requests('content').length;

describe('/api/view answers 302 to a client that fetches the link without a key', () => {
  test('an upstream’s own link is handed on as it is', async () => {
    linksTo('https://storage.example/bucket/a%20b.png?X-Sig=a%2Fb&e=1');
    const answer = await apiView(output);
    expect(answer).toEqual({
      status: 302,
      location: 'https://storage.example/bucket/a%20b.png?X-Sig=a%2Fb&e=1',
      text: '',
    });
    expect(pair.upstream.requests('content')[0]?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('the link is this server’s own where the upstream sends bytes', async () => {
    const { status, location } = await apiView(output);
    expect(status).toBe(302);
    expect(location).toMatch(`${pair.holdover.url}/api/signed/view?filename=a.png`);
    expect(decodeURIComponent(location)).not.toContain(KEY);
    expect(await plain(location)).toMatchObject({ status: 200, text: BYTES.toString() });
    const part = await fetch(location, { headers: { Range: 'bytes=2-4' } });
    expect([part.status, await part.text()]).toEqual([206, '234']);
    expect(pair.upstream.requests('content').at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`);
  });

  test('what is to be drawn anew is drawn here, wherever the bytes are', async () => {
    links(await pngOf());
    const { status, location } = await apiView(output, { preview: 'webp;90' });
    expect([status, new URL(location).origin]).toEqual([302, pair.holdover.url]);
    const picture = await fetch(location);
    expect(picture.headers.get('content-type')).toBe('image/webp');
  });

  test.each([
    ['gone', fault.refuse(404, 'output_unavailable'), 404],
    ['the upstream fails', fault.refuse(500, 'upstream_error'), 500],
    ['the upstream hangs up', fault.reset(), 500],
    ['the link is no link', ({ res }: any) => res.writeHead(302).end(), 500],
    [
      'the link holds the key',
      ({ res }: any) => res.writeHead(302, { Location: `https://s.example/?token=${KEY}` }).end(),
      500,
    ],
  ] as const)('%s: no link', async (_what, hook, status) => {
    pair.upstream.always('content', hook as never);
    const answer = await apiView(output);
    expect([answer.status, answer.location]).toEqual([status, '']);
    expect(answer.text).not.toContain(KEY);
  });
});

describe('/view brings bytes, wherever the upstream has them', () => {
  test('they are fetched from a link without anything of the caller’s', async () => {
    links();
    const headers = { Cookie: `a=${KEY}`, Referer: 'http://x/', 'Comfy-User': 'me' };
    const answer = await view(output, { headers });
    expect([answer.status, await answer.text()]).toEqual([200, BYTES.toString()]);
    expect(answer.headers.get('content-length')).toBe('10');
    expect(answer.headers.get('location')).toBeNull();
    const [visit] = storage.visits;
    expect(Object.keys(visit?.headers ?? {}).toSorted()).toEqual([
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ]);
    expect(JSON.stringify(storage.visits)).not.toContain(KEY);
  });

  test.each([
    [2, 200],
    [3, 502],
  ])('a link that leads on %i times: %i', async (redirects, status) => {
    links();
    const on = Array.from(
      { length: redirects },
      (_, i) =>
        ({ res }: any) =>
          res.writeHead(302, { Location: `/bucket/file?hop=${i}` }).end(),
    );
    storage.once(...on, ...(status === 502 ? on : []));
    const answer = await view(output);
    expect(answer.status).toBe(status);
    await answer.text();
  });

  test.each([
    'http://169.254.169.254/latest/meta-data/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fe80::1]/',
    'http://0.0.0.0/',
    'ftp://127.0.0.1/x',
    'file:///etc/passwd',
    'gopher://127.0.0.1/',
    'http://user:pass@127.0.0.1/',
  ])('a link to %s is followed neither at once nor later', async (location) => {
    linksTo(location);
    expect((await view(output)).status).toBe(502);
    links();
    const astray = ({ res }: any) => res.writeHead(302, { Location: location }).end();
    storage.once(astray, astray);
    expect((await view(output)).status).toBe(502);
  });

  test.each([400, 401, 403, 404, 500])(
    'a link that is refused (%i) is asked for again',
    async (s) => {
      links();
      storage.once(({ res }) => res.writeHead(s).end('<Error>expired</Error>'));
      const answer = await view(output);
      expect([answer.status, await answer.text()]).toEqual([200, BYTES.toString()]);
      expect(storage.visits.map(({ path }) => path)).toEqual([
        '/bucket/file?signature=s1',
        '/bucket/file?signature=s2',
      ]);
    },
  );

  test.each([
    [403, 502],
    [404, 404],
  ])('a new link that is refused as well (%i) is %i', async (refused, status) => {
    links();
    storage.always(({ res }) => res.writeHead(refused).end('<Error>bucket internals</Error>'));
    const answer = await view(output);
    expect(answer.status).toBe(status);
    expect(await answer.text()).not.toContain('bucket');
    expect(contentCalls()).toBe(2);
  });
});

describe.each([
  ['bytes', () => sends(BYTES)],
  ['a link', () => links()],
] as const)('ranges, when the upstream answers with %s', (_how, upstreamAnswers) => {
  beforeEach(() => upstreamAnswers());

  const ranges = [
    ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=7-99', 206, '789', 'bytes 7-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=0-1,4-5', 416, '', 'bytes */10'],
    ['lines=1-2', 416, '', 'bytes */10'],
    ['bytes=99-', 416, '', 'bytes */10'],
    ['bytes=9-2', 416, '', 'bytes */10'],
  ] as const;
  test.each(ranges.flatMap((row) => ['known', 'unknown'].map((size) => [...row, size] as const)))(
    '%s → %i %s (%s, size %s)',
    async (range, status, text, contentRange, size) => {
      const answer = await view(size === 'known' ? input : output, { headers: { Range: range } });
      expect(answer.status).toBe(status);
      expect(await answer.text()).toBe(text);
      expect(answer.headers.get('content-range')).toBe(contentRange);
      expect(answer.headers.get('content-length')).toBe(String(text.length));
    },
  );

  test('HEAD tells the length and brings nothing', async () => {
    const answer = await view(output, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([
      200,
      '10',
      '',
    ]);
  });

  test('a copy the client has is confirmed without asking anybody', async () => {
    const first = await view(output);
    await first.text();
    pair.upstream.journal.length = 0;
    const etag = first.headers.get('etag') ?? '';
    const again = await view(output, { headers: { 'If-None-Match': etag } });
    expect([again.status, await again.text()]).toEqual([304, '']);
    expect(pair.upstream.journal).toEqual([]);
  });

  test('a part of an outdated copy is the whole file', async () => {
    const answer = await view(output, { headers: { Range: 'bytes=2-4', 'If-Range': '"old"' } });
    expect([answer.status, await answer.text()]).toEqual([200, BYTES.toString()]);
  });
});

test.each([
  ['of another part', { 'Content-Range': 'bytes 3-5/10', 'Content-Length': '3' }],
  ['of unknown size', { 'Content-Range': 'bytes 2-4/*', 'Content-Length': '3' }],
  ['without a range', { 'Content-Length': '3' }],
])('a 206 %s is not taken for what was asked: the whole file is', async (_what, headers) => {
  pair.upstream.once('content', ({ res }) => void res.writeHead(206, headers).end('345'));
  const answer = await view(output, { headers: { Range: 'bytes=2-4' } });
  expect([answer.status, await answer.text()]).toEqual([200, BYTES.toString()]);
});

describe('bytes that break off', () => {
  const large = Buffer.alloc(2 * 1024 * 1024, 'how much of this will come through? ');

  test.each([
    ['once', 1],
    ['three times', 3],
  ])('%s at a storage host are taken up where they broke off', async (_times, breaks) => {
    links(large);
    storage.once(...Array.from({ length: breaks }, () => breakAfter(400_000)));
    const answer = await view(output);
    expect(answer.headers.get('content-length')).toBe(String(large.length));
    expect(Buffer.from(await answer.arrayBuffer()).equals(large)).toBe(true);
    const resumed = storage.visits.slice(1);
    expect(resumed).toHaveLength(breaks);
    for (const { headers } of resumed) {
      expect(headers.range).toMatch(/^bytes=\d{4,}-\d+$/);
      expect(headers['if-range']).toMatch(/^"/);
    }
  });

  test('in a part they are taken up inside that part', async () => {
    links(large);
    storage.once(breakAfter(100_000));
    const answer = await view(output, { headers: { Range: 'bytes=1000-900999' } });
    const part = Buffer.from(await answer.arrayBuffer());
    expect(part.equals(large.subarray(1000, 901_000))).toBe(true);
  });

  test.each([
    ['for good', () => storage.always(breakAfter(100_000))],
    [
      'and are others then',
      () =>
        storage.once((visitor) => {
          breakAfter(400_000)(visitor);
          storage.files.set('/bucket/file', Buffer.alloc(large.length, 'others'));
        }),
    ],
    [
      'and tell no caller what they were',
      () =>
        storage.always(({ res }) => {
          res.writeHead(200, { 'Content-Length': large.length });
          res.write(large.subarray(0, 400_000), () => setTimeout(() => res.destroy(), 20));
        }),
    ],
    [
      'of unknown length, after the first',
      () =>
        storage.always(({ res }) => {
          res.write(large.subarray(0, 400_000), () => setTimeout(() => res.destroy(), 20));
        }),
    ],
  ])('%s never look like a file', async (_what, act) => {
    links(large);
    act();
    const answer = await view(output).catch(() => undefined);
    const whole = await answer?.arrayBuffer().catch(() => undefined);
    expect(answer?.ok === true && whole !== undefined).toBe(false);
  });

  test('in a picture to be drawn anew are a 502', async () => {
    pair.upstream.always('content', ({ res }) => {
      res.writeHead(200, { 'Content-Length': '1000' });
      res.write('01234', () => setTimeout(() => res.socket?.resetAndDestroy(), 20));
    });
    const answer = await fetch(`${pair.holdover.url}/view?${viewQuery(output)}&preview=webp`, {
      headers: mine,
    });
    expect([answer.status, await answer.text()]).toEqual([502, expect.stringContaining('broke')]);
  });
});

describe('bytes whose number the upstream does not say', () => {
  beforeEach(() => {
    pair.upstream.always('content', ({ res }) => {
      res.write(BYTES.subarray(0, 4));
      setTimeout(() => res.end(BYTES.subarray(4)), 20);
    });
  });

  test.each([
    [{}, 200],
    [{ Range: 'bytes=2-4' }, 200],
    [{ Range: 'bytes=-3' }, 200],
  ])('come whole, asked for with %j', async (headers, status) => {
    const answer = await view(output, { headers });
    expect([answer.status, await answer.text()]).toEqual([status, BYTES.toString()]);
    expect(answer.headers.get('content-length')).toBeNull();
  });

  test('are reported without a length', async () => {
    const answer = await view(output, { method: 'HEAD' });
    expect([answer.status, answer.headers.get('content-length')]).toEqual([200, null]);
  });
});

test.each([
  ['down', fault.reset(), 502],
  ['refusing the key', fault.refuse(401, 'unauthorized'), 401],
  ['without the file', fault.refuse(404, 'not_found'), 404],
  ['a page of a proxy in between', fault.html(503), 503],
])('/view of an upstream that is %s: %i', async (_how, hook, status) => {
  pair.upstream.always('content', hook);
  const answer = await view(output);
  expect(answer.status).toBe(status);
  expect(await answer.text()).not.toMatch(/html|127\.0\.0\.1/);
});

test.each(['bytes', 'a link'])('a client who leaves takes the download along (%s)', async (how) => {
  let sent = 0;
  const flood = (res: any): void => {
    res.writeHead(200, { 'Content-Length': String(1024 ** 3), ETag: '"e"' });
    const block = Buffer.alloc(64 * 1024);
    const more = (): void => {
      while (!res.destroyed && res.write(block)) sent += block.length;
    };
    res.on('drain', more);
    more();
  };
  let closed = false;
  const watch = (res: any): void => {
    res.once('close', () => (closed = true));
    flood(res);
  };
  links();
  if (how === 'bytes') pair.upstream.always('content', ({ res }) => watch(res));
  else storage.always(({ res }) => watch(res));
  const request = get(`${pair.holdover.url}/view?${viewQuery(output)}`, { headers: mine });
  const [response] = await once(request, 'response');
  await once(response, 'data');
  request.destroy();
  await expect.poll(() => closed, { timeout: 1000 }).toBe(true);
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});

/** Trickles bytes until it is left; says when. */
function trickle(res: ServerResponse): void {
  const timer = setInterval(() => res.write(Buffer.alloc(1024)), 20);
  res.once('close', () => clearInterval(timer));
}

test('a client who leaves ends the download of a picture to be drawn anew', async () => {
  const states: string[] = [];
  pair.upstream.always('content', ({ res }) => {
    states.push('open');
    res.once('close', () => states.push('closed'));
    trickle(res);
  });
  const request = get(`${pair.holdover.url}/view?${viewQuery(output)}&preview=webp`, {
    headers: mine,
  });
  request.once('error', () => {});
  await expect.poll(() => states).toEqual(['open']);
  await sleep(100);
  request.destroy();
  await expect.poll(() => states, { timeout: 1000 }).toEqual(['open', 'closed']);
});

test('clients who leave hold up no other picture that is drawn', async () => {
  pair.upstream.always('content', ({ res }) => trickle(res));
  const before = contentCalls();
  const path = `/view?${viewQuery(output)}&preview=webp`;
  const request = requestText(path, { headers: [`X-API-Key: ${KEY}`] });
  const clients = await Promise.all(Array.from({ length: 20 }, () => dial(pair.holdover.port)));
  const [drawn, waiting] = [clients.slice(0, 2), clients.slice(2)];
  for (const client of drawn) client.send(request);
  await expect.poll(contentCalls).toBe(before + 2);
  for (const client of waiting) client.send(request);
  // By then they wait for their turn.
  expect((await view({ filename: 'none.png' })).status).toBe(404);
  // The server closes its side when it knows that they left. One that it does not know of gets its turn.
  for (const { socket } of waiting) socket.end();
  for (const client of waiting) expect((await client.answer()).raw).toBe('');
  expect(contentCalls()).toBe(before + 2);
  for (const client of drawn) client.reset();
  const bytes = await pngOf();
  sends(bytes);
  expect((await fetch(pair.holdover.url + path, { headers: mine })).status).toBe(200);
  expect(contentCalls()).toBe(before + 3);
});

describe('pictures drawn here', () => {
  test('one too large to be decoded is 400, and not fetched', async () => {
    links();
    let sent = 0;
    storage.always(({ res }) => {
      res.writeHead(200, { 'Content-Length': String(1024 ** 3) });
      res.write(Buffer.alloc(1024 * 1024), () => (sent += 1));
    });
    const answer = await fetch(`${pair.holdover.url}/view?${viewQuery(output)}&preview=webp`, {
      headers: mine,
    });
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('large')]);
    expect(sent).toBeLessThan(3);
  });
});

test('an original that cannot be read leaves no mask behind', async () => {
  pair.upstream.always('content', fault.reset());
  onTestFinished(() => sends(BYTES));
  const form = new FormData();
  form.append('image', new Blob([new Uint8Array(await pngOf())]), 'lost.png');
  form.append('original_ref', JSON.stringify({ ...output }));
  const sent = { method: 'POST', body: form, headers: mine };
  expect((await fetch(`${pair.holdover.url}/upload/mask`, sent)).status).toBe(502);
  expect((await view({ filename: 'lost.png', type: 'input' })).status).toBe(404);
});
