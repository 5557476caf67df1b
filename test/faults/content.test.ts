// Matrix F and G, and F13: files on their way in and out, clocks that are wrong, links that expire.
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as tick } from 'node:timers/promises';
import { FormData, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  type HostileV2,
  type Hook,
  error,
  fault,
  openHostileV2,
} from '../support/upstreams/hostile-v2.ts';
import { footprint } from '../support/processes/invariants.ts';
import { outputOf, runsToCompletion } from '../support/upstreams/job-scripts.ts';
import { loading } from '../support/graphs/workflows.ts';
import {
  type Answer,
  type Client,
  type FaultSetup,
  openFaultSetup,
  openOwnSetup,
  useSharedSetup,
} from './open.ts';

let setup: FaultSetup;
useSharedSetup((opened) => (setup = opened));

const theirs = (client: Client) => setup.upstream.of(client.key);

const RECORD = {
  hash: null,
  size_bytes: 1,
  content_type: 'image/png',
  created_at: '2026-01-01T00:00:00Z',
  url: '/x',
  url_expires_at: '2026-01-02T00:00:00Z',
};

type Upload = { readonly name?: string; readonly fields?: Record<string, string> };

function upload(
  client: Client,
  bytes: Buffer,
  { name = 'a.png', fields = {} }: Upload = {},
): Promise<Answer> {
  const form = new FormData();
  for (const [field, value] of Object.entries(fields)) form.append(field, value);
  form.append('image', new Blob([new Uint8Array(bytes)]), name);
  return client.ask('/upload/image', { method: 'POST', body: form });
}

async function shown(client: Client, name: string, holdover = setup.holdover()): Promise<Buffer> {
  const url = `${holdover.url}/view?${new URLSearchParams({ filename: name, type: 'input' })}`;
  const answer = await fetch(url, { headers: client.headers });
  expect(answer.status).toBe(200);
  return Buffer.from(await answer.arrayBuffer());
}

/** A finished prompt whose picture is these bytes; the query of its `/view`. */
async function picture(where: FaultSetup, client: Client, bytes: Buffer): Promise<string> {
  where.upstream.script(async (job, server) => {
    const made = outputOf(job, { size_bytes: bytes.length }) as { id: string };
    server.contents.set(made.id, bytes);
    server.change(job.id, { outputs: [made], status: 'succeeded' });
  }, client.key);
  const { promptId } = await client.post();
  const entry = await client.ended(promptId);
  return String(new URLSearchParams(entry.outputs['9'].images[0]));
}

describe('uploads', () => {
  test('F66 bytes damaged on the way are sent once more', async () => {
    const client = await setup.client();
    const bytes = randomBytes(5_000);
    theirs(client).once('upload', fault.refuse(409, 'hash_mismatch'));
    expect((await upload(client, bytes)).json.name).toBe('a.png');
    expect(theirs(client).requests('upload')).toHaveLength(2);
    expect(await shown(client, 'a.png')).toEqual(bytes);
  });

  test('F66 damaged twice is an error, and the name is not taken', async () => {
    const client = await setup.client();
    theirs(client).always('upload', fault.refuse(409, 'hash_mismatch'));
    const { status, json } = await upload(client, randomBytes(5_000));
    expect({ status, type: json.error.type }).toEqual({ status: 502, type: 'hash_mismatch' });
    expect(theirs(client).requests('upload')).toHaveLength(2);
    expect((await client.ask('/view?filename=a.png&type=input')).status).toBe(404);
  });

  test('F67 bytes that are there when asked and gone when wanted are sent', async () => {
    const client = await setup.client();
    theirs(client).once('byHash', ({ res }) => void res.writeHead(200).end());
    theirs(client).once('fromHash', fault.refuse(404, 'blob_not_found'));
    const bytes = randomBytes(5_000);
    expect((await upload(client, bytes)).status).toBe(200);
    expect(theirs(client).requests('upload')).toHaveLength(1);
    expect(await shown(client, 'a.png')).toEqual(bytes);
  });

  test('known bytes are not sent again', async () => {
    const client = await setup.client();
    const bytes = randomBytes(5_000);
    await upload(client, bytes);
    await upload(client, bytes, { name: 'b.png' });
    expect(theirs(client).requests('upload')).toHaveLength(1);
    expect(await shown(client, 'b.png')).toEqual(bytes);
  });

  test('F68 413 while the bytes are still on their way is a 4xx, and nothing is left', async () => {
    const own = await openOwnSetup();
    own.upstream.hasty.add('upload');
    own.upstream.always('upload', ({ req }) => {
      const body = JSON.stringify(error('payload_too_large'));
      const head = `HTTP/1.1 413 Payload Too Large\r\nContent-Type: application/json\r\n`;
      // It reads no more, but stays open: its answer must get through.
      req.socket.write(`${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
      setTimeout(() => req.socket.destroy(), 1_000).unref();
    });
    const client = await own.client();
    const { status } = await upload(client, randomBytes(8 * 2 ** 20));
    expect([400, 413]).toContain(status);
    await own.check();
  });

  test('one that goes up slowly, but goes, takes as long as it takes', async () => {
    const own = await openOwnSetup({ limits: { submitTimeoutMs: 6_000 } });
    const client = await own.client();
    const bytes = randomBytes(700_000);
    own.proxy.set('up', { bytesPerSecond: 350_000, sliceBytes: 8_192 });
    expect((await upload(client, bytes)).status).toBe(200);
    own.proxy.restore();
    expect(await shown(client, 'a.png', own.holdover())).toEqual(bytes);
  });

  test('F69 many at once cost no memory', async () => {
    const own = await openOwnSetup({ limits: { submitTimeoutMs: 20_000, readTimeoutMs: 10_000 } });
    const client = await own.client();
    own.upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
    own.upstream.always('upload', ({ json }) => json(201, { ...RECORD, id: randomUUID() }));
    const before = footprint(own.holdover()).rssBytes;
    let most = before;
    const sampler = setInterval(
      () => (most = Math.max(most, footprint(own.holdover()).rssBytes)),
      50,
    );
    onTestFinished(() => clearInterval(sampler));
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, i) =>
        upload(client, randomBytes(6 * 2 ** 20), { name: `${i}.png` }),
      ),
    );
    // Beyond what may be under way at once it is told to come again.
    for (const { status } of all) expect([200, 503]).toContain(status);
    expect(all.filter(({ status }) => status === 200).length).toBeGreaterThan(3);
    expect(most - before).toBeLessThan(12 * 8 * 2 ** 20);
  });

  test('F70 one name at the same time with different bytes: two names, each with its own bytes', async () => {
    const client = await setup.client();
    const [one, two] = [randomBytes(200_000), randomBytes(200_000)];
    const answers = await Promise.all([upload(client, one), upload(client, two)]);
    const names = answers.map(({ json }) => String(json.name));
    expect(new Set(names)).toEqual(new Set(['a (1).png', 'a.png']));
    expect(await shown(client, names[0] ?? '')).toEqual(one);
    expect(await shown(client, names[1] ?? '')).toEqual(two);
  });

  test('F70 with overwrite: the name has all of one or all of the other', async () => {
    const client = await setup.client();
    const both = [randomBytes(200_000), randomBytes(200_000)];
    const fields = { overwrite: 'true' };
    await Promise.all(both.map((bytes) => upload(client, bytes, { fields })));
    const now = await shown(client, 'a.png');
    expect(both.some((bytes) => bytes.equals(now))).toBe(true);
  });

  test('F13 an upload the service has lost meanwhile is given to it once more, and the prompt runs', async () => {
    const client = await setup.client();
    await upload(client, randomBytes(3_000), { name: 'lost.png' });
    const gone = lostAsset();
    theirs(client).once('submit', gone);
    const marker = `f13-${randomUUID()}`;
    const { status, promptId } = await client.post({ marker, prompt: loading('lost.png', marker) });
    expect(status).toBe(200);
    expect((await client.ended(promptId)).status.status_str).toBe('success');
    expect(client.jobs(marker)).toHaveLength(1);
    const sent = theirs(client)
      .requests('submit')
      .map(({ body }) => String(body));
    expect(sent).toHaveLength(2);
    expect(sent[1]).not.toBe(sent[0]);
    expect(theirs(client).requests('upload')).toHaveLength(1);
  });

  test('F13 one that cannot be mended is 400, names the file, and was not tried for long', async () => {
    const client = await setup.client();
    await upload(client, randomBytes(3_000), { name: 'lost.png' });
    theirs(client).always('submit', lostAsset());
    theirs(client).always('fromHash', fault.refuse(404, 'blob_not_found'));
    theirs(client).always('upload', fault.refuse(413, 'payload_too_large'));
    const marker = `f13-${randomUUID()}`;
    const { status, json } = await client.post({ marker, prompt: loading('lost.png', marker) });
    expect(status).toBe(400);
    expect(JSON.stringify(json.node_errors)).toContain('lost.png');
    expect(theirs(client).requests('submit')).toHaveLength(1);
  });

  test('F13 one that is refused again under its new id is refused for good', async () => {
    const client = await setup.client();
    await upload(client, randomBytes(3_000), { name: 'lost.png' });
    theirs(client).always('submit', lostAsset());
    const marker = `f13-${randomUUID()}`;
    const { status } = await client.post({ marker, prompt: loading('lost.png', marker) });
    expect(status).toBe(400);
    expect(theirs(client).requests('submit')).toHaveLength(2);
  });

  /** The answer to a workflow that names an unknown asset. */
  function lostAsset(): Hook {
    return ({ body, json }) => {
      const ids = [...body.toString().matchAll(/"id":"([^"]+)"/g)].map(([, id]) => id);
      json(422, error('missing_asset', 'an asset is missing', { missing_ids: ids }));
    };
  }
});

describe('a clock that is wrong', () => {
  /** The process lives in another time. */
  function shifted(ms: number): NodeJS.ProcessEnv {
    const code = `const now = Date.now; const Real = Date; let by = ${ms};
      globalThis.Date = class extends Real { constructor(...a) { if (a.length) super(...a); else super(now() + by); } static now() { return now() + by; } };
      process.on('SIGUSR2', () => { by -= 3_600_000; });`;
    return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` };
  }

  test.each([
    ['ten minutes ahead', 600_000],
    ['ten minutes behind', -600_000],
  ])('F60 %s: prompts run, lost submissions are found, pictures are shown', async (_, ms) => {
    const own = await openOwnSetup({ env: shifted(ms) });
    own.upstream.script(runsToCompletion());
    const client = await own.client();
    own.upstream.once('submit', fault.claimAndDie({ withJob: true }));
    const { status, promptId } = await client.post();
    expect(status).toBe(200);
    const entry = await client.ended(promptId);
    const query = new URLSearchParams(entry.outputs['9'].images[0]);
    expect((await client.ask(`/view?${query}`)).text).toBe('0123456789');
    const link = (await client.ask(`/api/view?${query}`)).headers.get('location') ?? '';
    expect(await (await fetch(link)).text()).toBe('0123456789');
    await own.check();
  });

  test('F64 an hour back in the middle of it: order and numbers stay, and nothing hangs', async () => {
    const own = await openOwnSetup({ env: shifted(0) });
    own.upstream.script(runsToCompletion({ waitMs: 150 }));
    const client = await own.client();
    const before = await client.post();
    process.kill(own.holdover().pid, 'SIGUSR2');
    const after = await client.post();
    for (const { promptId } of [before, after]) await client.ended(promptId);
    expect(after.json.number).toBeGreaterThan(before.json.number);
    expect(Object.keys((await client.ask('/history')).json)).toEqual([
      before.promptId,
      after.promptId,
    ]);
    await own.check();
  });

  test.each([
    null,
    0,
    1e99,
    '',
    'yesterday',
    '1969-12-31T23:59:59Z',
    '2038-01-19T03:14:08Z',
    '2026-10-25T02:30:00+02:00',
    '0001-01-01T00:00:00Z',
  ])('F65 %j as every time of a job is no obstacle, and no NaN for anybody', async (time) => {
    const client = await setup.client();
    const times = { created_at: time, started_at: time, completed_at: time, expires_at: time };
    setup.upstream.script(async (job, server) => {
      Object.assign(job, times);
      await runsToCompletion()(job, server);
      Object.assign(job, times);
    }, client.key);
    const { promptId } = await client.post();
    await client.ended(promptId);
    for (const path of [
      '/history',
      '/api/history_v2',
      '/api/jobs',
      `/api/job/${promptId}/status`,
    ]) {
      const { text } = await client.ask(path);
      expect([path, text]).not.toEqual([path, expect.stringMatching(/NaN|Infinity|Invalid/)]);
    }
    const numbers = JSON.stringify(await client.history(promptId)).matchAll(
      /"timestamp":([^,}]+)/g,
    );
    for (const [, number] of numbers) expect(Number(number)).toBeGreaterThan(1e12);
  });
});

describe('links that expire', () => {
  let store: HostileV2;
  let own: FaultSetup;
  beforeAll(async () => {
    store = await openHostileV2();
    own = await openFaultSetup();
    own.upstream.signing = { origin: store.origin, forMs: 60_000 };
  });
  afterAll(async () => {
    await own.close();
    await store.close();
  });

  test('F61 one that is refused is asked for anew, once', async () => {
    const client = await own.client();
    const query = await picture(own, client, Buffer.from('0123456789'));
    store.once('signed', ({ res }) => void res.writeHead(403).end('expired'));
    const { status, text } = await client.ask(`/view?${query}`);
    expect([status, text]).toEqual([200, '0123456789']);
  });

  test('F61 one that is refused again and again is an error, soon', async () => {
    const client = await own.client();
    const query = await picture(own, client, Buffer.from('0123456789'));
    const asked = store.requests('signed').length;
    store.always('signed', ({ res }) => void res.writeHead(403).end('expired'));
    onTestFinished(() => store.always('signed', (exchange) => exchange.honestly()));
    const { status } = await client.ask(`/view?${query}`);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(store.requests('signed').length - asked).toBeLessThanOrEqual(3);
  });

  test('F61 /api/view gives a fresh one every time', async () => {
    const client = await own.client();
    const query = await picture(own, client, Buffer.from('0123456789'));
    const first = (await client.ask(`/api/view?${query}`)).headers.get('location');
    await tick(5);
    expect((await client.ask(`/api/view?${query}`)).headers.get('location')).not.toBe(first);
  });

  test.each([
    ['a loop', (path: string) => `${store.origin}${path}`],
    ['a file', () => 'file:///etc/passwd'],
    ['a script', () => 'javascript:alert(1)'],
    ['a login in it', () => 'http://user:secret@127.0.0.1:1/'],
    ['nowhere', () => 'http://'],
  ])('F62 a redirect to %s leads nowhere, and no key goes along', async (_, target) => {
    const client = await own.client();
    const query = await picture(own, client, Buffer.from('0123456789'));
    const seen = store.journal.length;
    store.always(
      'signed',
      (exchange) =>
        void exchange.res.writeHead(302, { Location: target(exchange.req.url ?? '') }).end(),
    );
    onTestFinished(() => store.always('signed', (exchange) => exchange.honestly()));
    own.upstream.of(client.key).always('content', (exchange) => {
      const Location = target('/signed/x?until=9999999999999');
      exchange.res.writeHead(302, { Location }).end();
    });
    const { status, text } = await client.ask(`/view?${query}`);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(text).not.toMatch(/root:|secret/);
    expect(store.journal.length - seen).toBeLessThanOrEqual(6);
    expect(JSON.stringify(store.journal)).not.toContain(client.key);
  });

  describe('F63 a store that breaks off', () => {
    const bytes = randomBytes(300_000);

    async function broken() {
      const client = await own.client();
      const query = await picture(own, client, bytes);
      for (const [id, held] of own.upstream.contents) store.contents.set(id, held);
      store.once('signed', ({ res }) => {
        const headers = { 'Content-Length': bytes.length, ETag: '"e"' };
        res.writeHead(200, { 'Content-Type': 'image/png', ...headers });
        res.write(bytes.subarray(0, 180_000));
        setTimeout(() => res.socket?.resetAndDestroy(), 30);
      });
      return { client, url: `${own.holdover().url}/view?${query}` };
    }

    test('the rest is fetched, if it is the rest of the same', async () => {
      const { client, url } = await broken();
      const answer = await fetch(url, { headers: client.headers });
      expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
      expect(store.requests('signed').at(-1)?.headers).toMatchObject({
        'if-range': '"e"',
        range: expect.stringMatching(/^bytes=1\d+-299999$/),
      });
    });

    test('and has other bytes by then: the connection ends, nothing is mixed', async () => {
      const { client, url } = await broken();
      store.once('signed', ({ res }) => {
        res.writeHead(200, { 'Content-Type': 'image/png', 'Content-Length': 5, ETag: '"f"' });
        res.end('other');
      });
      const answer = await fetch(url, { headers: client.headers });
      await expect(answer.arrayBuffer()).rejects.toThrow();
    });
  });
});

test('I1 to I10 hold over all of it', () => setup.check());
