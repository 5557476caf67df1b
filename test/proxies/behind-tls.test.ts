// Whole jobs through nginx and HAProxy, with TLS and below a prefix, as docs/proxies.md sets them up.
import { createHash } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import type { Browser } from 'playwright-core';
import { type BrowserType, chromium as playwright } from 'playwright-core';
import { createParser } from 'eventsource-parser';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { findChromium } from '../support/browser/chromium.ts';
import { formatOf, pngOf } from '../support/clients/client-helpers.ts';
import { freePort } from '../support/processes/free-port.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import {
  PUBLIC_HOST,
  type RunningProxy,
  missingPrograms,
  startHaproxy,
  startNginx,
} from '../support/processes/proxy-programs.ts';
import { runScript } from '../support/clients/run-script.ts';
import { type WebRoot, makeWebRoot } from '../support/browser/web-root.ts';
import { flat, growing, loading } from '../support/graphs/workflows.ts';

// A busy machine is slow, not wrong.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const missing = missingPrograms();
const notRun = missing.length === 0 ? '' : ` (NOT RUN: no ${missing.join(', ')})`;
if (notRun) console.warn(`docs/proxies.md is not tried${notRun}`);
const chromium = findChromium();

const MEBIBYTE = 1024 * 1024;
const KEY = { 'X-API-Key': 'key-of-ann' };

type Setup = {
  readonly prefix: string;
  readonly args: (base: string) => readonly string[];
  readonly start: (ports: { upstreamPort: number; port: number }) => Promise<RunningProxy>;
};

const SETUPS: Readonly<Record<string, Setup>> = {
  'nginx at a host of its own': {
    prefix: '',
    args: (base) => ['--public-url', base, '--trust-proxy', 'loopback'],
    start: startNginx,
  },
  'nginx below a prefix': {
    prefix: '/comfy',
    args: (base) => ['--public-url', base],
    start: (ports) => startNginx({ ...ports, changes: [['location / {', 'location /comfy/ {']] }),
  },
  'HAProxy below a prefix': {
    prefix: '/comfy',
    args: () => ['--trust-proxy', 'loopback', '--allowed-hosts', PUBLIC_HOST],
    start: startHaproxy,
  },
};

/** The page and a hosted program ask for the same addresses behind each. */
const WITH_PROGRAMS: keyof typeof SETUPS = 'nginx below a prefix';

/** The public name is known to no name server. */
const lookup: LookupFunction = (_name, { all }, done) =>
  all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);
const LOOKUP_IN_SCRIPTS = `--import=data:text/javascript,${encodeURIComponent(
  `import dns from 'node:dns'; const own = dns.lookup;
   dns.lookup = (name, options, done) =>
     own(name === '${PUBLIC_HOST}' ? '127.0.0.1' : name, options, done);`,
)}`;

// As .ci/run says: what the documentation shows must have been tried there.
test.runIf(process.env['HOLDOVER_TEST_PROXIES'] === 'required')('all programs are here', () => {
  expect(missing).toEqual([]);
});

describe.skipIf(notRun).each(Object.entries(SETUPS))(`%s${notRun}`, (name, setup) => {
  let web: WebRoot;
  let server: Holdover;
  let proxy: RunningProxy;
  let agent: Agent;
  let base = '';
  beforeAll(async () => {
    web = await makeWebRoot();
    const port = await freePort();
    base = `https://${PUBLIC_HOST}:${port}${setup.prefix}`;
    const args = [...setup.args(base), '--front-end-root', web.root];
    server = await startHoldover({ args, upstream: 'embedded' });
    proxy = await setup.start({ upstreamPort: server.port, port });
    agent = new Agent({ connect: { ca: proxy.ca, lookup } });
  });
  afterAll(async () => {
    await agent?.close();
    await proxy?.close();
    await server?.dispose();
    await web?.dispose();
  });

  const ask = (path: string, init: Parameters<typeof undiciFetch>[1] = {}) =>
    undiciFetch(path.startsWith('https:') ? path : base + path, {
      ...init,
      dispatcher: agent,
      redirect: 'manual',
    });
  const json = async (path: string, init?: Parameters<typeof undiciFetch>[1]): Promise<any> =>
    (await ask(path, init)).json();
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    json(path, { method: 'POST', body: JSON.stringify(body), headers });

  async function openSocket(query: string, headers: Record<string, string> = {}) {
    const url = `${base.replace('https', 'wss')}/ws?${query}`;
    const socket = new WebSocket(url, { ca: proxy.ca, lookup, headers } as WebSocket.ClientOptions);
    const messages: any[] = [];
    let heard = (): void => {};
    socket.on('message', (data: Buffer, isBinary) => {
      messages.push(isBinary ? { type: 'binary' } : JSON.parse(data.toString()));
      heard();
    });
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
    const until = (isIt: (message: any) => boolean): Promise<any> =>
      new Promise((resolve) => {
        heard = () => messages.some(isIt) && resolve(messages.find(isIt));
        heard();
      });
    return { until, messages, close: () => socket.close() };
  }

  async function finish(prompt: object, headers: Record<string, string> = {}) {
    const socket = await openSocket('clientId=ann', headers);
    const { prompt_id: id } = await post('/prompt', { prompt, client_id: 'ann' }, headers);
    await socket.until(({ type, data }) => type === 'executing' && data.node === null);
    socket.close();
    const entry = (await json(`/history/${id}`, { headers }))[id];
    return { messages: socket.messages, image: entry.outputs['9'].images[0] };
  }

  test('a local client runs a job: prompt, socket, history, view', async () => {
    const { messages, image } = await finish(growing({ seed: 1 }));
    expect(messages.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['status', 'execution_start', 'progress', 'execution_success']),
    );
    const answer = await ask(`/view?${new URLSearchParams(image)}`);
    expect([answer.status, await formatOf(await answer.arrayBuffer())]).toEqual([200, 'png 64x64']);
  });

  test('the redirect of /api/view leads to the public address, and needs no key', async () => {
    const { image } = await finish(flat({ color: 3 }), KEY);
    const answer = await ask(`/api/view?${new URLSearchParams(image)}`, { headers: KEY });
    const location = answer.headers.get('location') ?? '';
    expect([answer.status, location.startsWith(`${base}/api/signed/view?`)]).toEqual([302, true]);
    const whole = Buffer.from(await (await ask(location)).arrayBuffer());
    const part = await ask(location, { headers: { Range: 'bytes=0-7' } });
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([
      206,
      whole.subarray(0, 8),
    ]);
    const head = await ask(location, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, `${whole.length}`]);
  });

  test('an upload is kept, and is an input of the next job', async () => {
    const form = new FormData();
    form.append('image', new Blob([new Uint8Array(await pngOf())]), 'photo 1.png');
    const body = new Request('http://x', { method: 'POST', body: form });
    const uploaded = await json('/upload/image', {
      method: 'POST',
      headers: { 'Content-Type': body.headers.get('content-type') ?? '' },
      body: Buffer.from(await body.arrayBuffer()),
    });
    const { image } = await finish(loading(uploaded.name));
    const answer = await ask(`/view?${new URLSearchParams(image)}`);
    expect(await formatOf(await answer.arrayBuffer())).toBe('png 30x20');
  });

  test('a large upload passes, and comes back whole', async () => {
    const bytes = Buffer.alloc(8 * MEBIBYTE, createHash('sha256').update('x').digest());
    const boundary = 'b';
    const head = `--b\r\nContent-Disposition: form-data; name="image"; filename="large.bin"\r\n\r\n`;
    const { name } = await json('/upload/image', {
      method: 'POST',
      headers: { 'Content-Type': `multipart/form-data; boundary=${boundary}` },
      body: Buffer.concat([Buffer.from(head), bytes, Buffer.from('\r\n--b--\r\n')]),
    });
    const answer = await ask(`/view?filename=${name}&type=input`);
    expect(bytes.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
  });

  test('a v2 job: every link leads to the public address, events come as they happen', async () => {
    const job = await post('/api/v2/jobs', { workflow: growing({ seed: 4, steps: 30 }) }, KEY);
    // At a proxy of which only the headers tell, links are as whole as with --public-url.
    for (const url of Object.values(job.urls)) expect(url).toMatch(new RegExp(`^${base}/api/v2/`));
    const stream = await ask(job.urls.events, { headers: KEY });
    const seen: { event: string; data: any; chunk: number }[] = [];
    let chunk = 0;
    const parser = createParser({
      onEvent: ({ event = '', data }) =>
        void seen.push({ event, data: JSON.parse(data) as unknown, chunk }),
    });
    for await (const bytes of stream.body ?? []) {
      chunk += 1;
      parser.feed(Buffer.from(bytes as Uint8Array).toString());
    }
    expect(seen.at(-1)).toMatchObject({ event: 'status', data: { status: 'succeeded' } });
    // A proxy that buffers events sends them in one piece.
    expect(chunk).toBeGreaterThan(3);
    const done = await json(job.urls.self, { headers: KEY });
    const shown = [...done.outputs, ...urlsIn(seen)];
    // In the record, in its own event, and with the job in the last one.
    expect(shown).toHaveLength(3);
    for (const output of shown) {
      expect(output.url.startsWith(`${base}/api/v2/assets/`)).toBe(true);
      const answer = await ask(output.url);
      expect([answer.status, await formatOf(await answer.arrayBuffer())]).toEqual([
        200,
        'png 64x64',
      ]);
      expect((await ask(output.url.split('?')[0])).status).toBe(404);
    }
  });

  test('the successor of a v1 call is named below the prefix', async () => {
    const link = `<${setup.prefix}/api/v2/jobs>; rel="successor-version"`;
    for (const path of ['/queue', '/history', '/api/queue?x']) {
      const answer = await ask(path);
      await answer.arrayBuffer();
      expect(answer.headers.get('link')).toBe(link);
    }
  });

  test('encoded names stay as they are', async () => {
    const path = '/api/userdata/workflows%2Fmy%20first.json';
    expect((await ask(path, { method: 'POST', body: '{}' })).status).toBe(200);
    expect(await json('/api/userdata?dir=workflows')).toEqual(['my first.json']);
  });

  test('a front end is served, and its origin may call', async () => {
    expect(await (await ask('/')).text()).toContain('<title>stub</title>');
    const { origin } = new URL(base);
    const answer = await ask('/prompt', {
      method: 'POST',
      body: '{}',
      headers: { Origin: origin },
    });
    expect(answer.status).toBe(400);
    const socket = await openSocket('clientId=tab', { Origin: origin });
    await socket.until(({ type }) => type === 'status');
    socket.close();
    const foreign = { Origin: 'https://evil.example' };
    expect((await ask('/prompt', { method: 'POST', body: '{}', headers: foreign })).status).toBe(
      403,
    );
    await expect(openSocket('clientId=evil', foreign)).rejects.toThrow('403');
  });

  test('no signature is in the log', () => {
    expect(server.log()).toContain('signature=[removed]');
    expect(server.log()).not.toMatch(/signature=(?!\[removed\])/);
  });

  if (name !== WITH_PROGRAMS) return;
  test('an unchanged hosted program follows its redirect over https', async () => {
    const env = { NODE_EXTRA_CA_CERTS: proxy.caFile, NODE_OPTIONS: LOOKUP_IN_SCRIPTS };
    const run = await runScript('hosted-style.mjs', growing({ seed: 2 }), {
      before: [base, 'key-of-bob'],
      env,
    });
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(await Promise.all(run.files.map(formatOf))).toEqual(['png 64x64']);
  });

  const noBrowser = chromium.ok ? '' : ` (NOT RUN: ${chromium.why})`;
  test.skipIf(noBrowser)(`Holdover's own page is live in a browser${noBrowser}`, async () => {
    const browser = await launch(playwright, chromium.ok ? chromium.path : '');
    try {
      const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
      const failures: string[] = [];
      page.on('requestfailed', (request) => {
        // Leaving a page ends the calls it had on the way.
        const isLeft = request.failure()?.errorText === 'net::ERR_ABORTED';
        if (!isLeft) failures.push(request.url());
      });
      page.on('response', (answer) => answer.status() >= 400 && failures.push(answer.url()));
      await page.goto(`${base}/holdover`);
      await page.locator('#link', { hasText: 'connected' }).waitFor({ timeout: 30_000 });
      await page.locator('.job-row img').first().waitFor({ timeout: 30_000 });
      await page.locator('.job-link').first().click();
      await page.locator('.node', { hasText: /done/ }).first().waitFor();
      await page.getByRole('link', { name: 'Inspect', exact: true }).click();
      await page.getByRole('heading', { name: 'Inspector' }).waitFor();
      await page.getByRole('link', { name: 'Connect' }).click();
      await page.getByRole('heading', { name: 'Connect' }).waitFor();
      expect(await page.locator('code').allTextContents()).toEqual(
        expect.arrayContaining([base, `${base}/api/v2`]),
      );
      await page.getByRole('link', { name: 'Leaving v1' }).click();
      await page.getByRole('heading', { name: 'Leaving v1' }).waitFor();
      expect(page.url()).toBe(`${base}/holdover#/clients`);
      expect(failures).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});

function urlsIn(events: readonly { event: string; data: any }[]): { url: string }[] {
  return events.flatMap(({ event, data }) => {
    if (event === 'status') return data.outputs ?? [];
    return event === 'output' ? [data] : [];
  });
}

function launch(browser: BrowserType, executablePath: string): Promise<Browser> {
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const args = [...sandbox, `--host-resolver-rules=MAP ${PUBLIC_HOST} 127.0.0.1`];
  return browser.launch({ executablePath, args });
}
