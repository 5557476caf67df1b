// Answers of a service that have no end: heads, JSON, events. Each is cut off at a limit, whatever the
// service goes on sending; the client is told in words, the log by a stable event.
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Holdover } from '../support/processes/holdover.ts';
import {
  type Hook,
  type HostileV2,
  type Route,
  openHostileV2,
} from '../support/upstreams/hostile-v2.ts';
import {
  type FileRef,
  madeOutputs,
  startInFront,
  viewQuery,
} from '../support/processes/holdover-before-hostile.ts';
import { finish, staysRunning } from '../support/upstreams/job-scripts.ts';
import { getJson, postPrompt } from '../support/clients/v1-client.ts';
import { flat } from '../support/graphs/workflows.ts';

vi.setConfig({ testTimeout: 60_000 });

const MIB = 1024 * 1024;
const LIMITS = { maxAnswerBytes: 4 * MIB, maxEventChars: MIB, readTimeoutMs: 20_000 };
/** The bytes that buffers of two sockets may hold when one of them is closed. */
const ON_THE_WAY = 16 * MIB;
const KEY = { 'X-API-Key': 'anna' };

let upstream: HostileV2;
let holdover: Holdover;
let sockets: Set<Socket>;
/** An output, of which there is no copy here. */
let file: Partial<FileRef>;

beforeAll(async () => {
  upstream = await openHostileV2();
  holdover = await startInFront(upstream, { limits: LIMITS });
  const made = await madeOutputs({ upstream, holdover }, [{ id: 'made' }], KEY);
  [file = {}] = made.files;
});
beforeEach(() => void (sockets = new Set()));
afterEach(async () => {
  for (const route of ['content', 'get', 'events', 'upload', 'byHash'] as const) honestly(route);
  upstream.script(undefined);
  // The service would send for ever: Holdover closed the connections.
  await expect.poll(() => [...sockets].every((socket) => socket.destroyed)).toBe(true);
});
afterAll(async () => {
  await holdover?.dispose();
  await upstream?.close();
});

const honestly = (route: Route) => upstream.always(route, (exchange) => exchange.honestly());

/** Says the first text, then the other one for ever, as fast as it is taken. */
function endless(first: string, again: string): Hook {
  const piece = Buffer.from(again.repeat(Math.ceil(65_536 / again.length)));
  return ({ req: { socket } }) => {
    sockets.add(socket);
    const more = (): void => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', more);
    socket.write(first);
    more();
  };
}

const OK = 'HTTP/1.1 200 OK\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';
const HEADERS = endless(OK, `X-Filler: ${'x'.repeat(100)}\r\n`);
const ONE_HEADER = endless(`${OK}X-Filler: `, 'x');
const INTERIM = endless('', 'HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n');
const TRAILERS = endless(`${OK}${CHUNKED}\r\n0\r\n`, `X-Filler: ${'x'.repeat(100)}\r\n`);
const JSON_TEXT = endless(`${OK}Content-Type: application/json\r\n\r\n{"id":"`, 'x');
const ANNOUNCED = endless(
  `${OK}Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{"id":"`,
  'x',
);

/** The most that was taken of any answer. */
const taken = () =>
  Math.max(0, ...[...sockets].map((socket) => socket.bytesWritten - socket.writableLength));

const lines = (event: string) =>
  holdover
    .log()
    .split('\n')
    .filter((line) => line.includes(`"event":"${event}"`));

const resident = async (): Promise<number> => {
  const text = await (await fetch(`${holdover.url}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)$/m.exec(text)?.[1]);
};

const view = () => fetch(`${holdover.url}/view?${viewQuery(file)}`, { headers: KEY });

describe('of a head', () => {
  test.each([
    ['headers', HEADERS],
    ['one header', ONE_HEADER],
    ['interim answers', INTERIM],
  ])('%s: /view is a 502 in words', async (_what, hook) => {
    const before = lines('upstream.headers_too_large').length;
    upstream.always('content', hook);
    const answer = await view();
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining('too large'),
    ]);
    await expect.poll(() => lines('upstream.headers_too_large').length).toBeGreaterThan(before);
    expect(taken()).toBeLessThan(ON_THE_WAY);
  });

  test.each([
    ['interim answers', INTERIM],
    ['trailers', TRAILERS],
  ])('%s: an upload is a 502 in words', async (_what, hook) => {
    upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
    upstream.always('upload', hook);
    const form = new FormData();
    form.append('image', new Blob([`other bytes ${_what}`]), 'b.png');
    const answer = await fetch(`${holdover.url}/upload/image`, {
      method: 'POST',
      body: form,
      headers: KEY,
    });
    expect([answer.status, await answer.text()]).toEqual([
      502,
      expect.stringContaining('too large'),
    ]);
    expect(taken()).toBeLessThan(ON_THE_WAY);
  });

  test('headers: a call that is passed through is a 500 in v2’s words', async () => {
    upstream.always('get', HEADERS);
    const before = lines('upstream.call_not_passed').length;
    const answer = await fetch(`${holdover.url}/api/v2/jobs/some-job`, { headers: KEY });
    expect(answer.status).toBe(500);
    expect((await answer.json()).error).toMatchObject({ code: 'upstream_error' });
    await expect.poll(() => lines('upstream.call_not_passed').length).toBe(before + 1);
    expect(taken()).toBeLessThan(ON_THE_WAY);
  });
});

describe('of JSON', () => {
  test.each([
    ['one text', JSON_TEXT],
    ['one of announced length', ANNOUNCED],
  ])('%s: an upload is a 502 in words, and memory stays', async (what, hook) => {
    upstream.always('byHash', ({ res }) => void res.writeHead(404).end());
    upstream.always('upload', hook);
    const before = await resident();
    for (let i = 0; i < 8; i++) {
      const form = new FormData();
      form.append('image', new Blob([`${what} ${i}`]), 'c.png');
      const answer = await fetch(`${holdover.url}/upload/image`, {
        method: 'POST',
        body: form,
        headers: KEY,
      });
      expect([answer.status, await answer.text()]).toEqual([
        502,
        expect.stringContaining('too large'),
      ]);
    }
    expect(sockets.size).toBe(8);
    expect(taken()).toBeLessThan(LIMITS.maxAnswerBytes + ON_THE_WAY);
    expect((await resident()) - before).toBeLessThan(100 * MIB);
    await expect.poll(() => lines('upstream.answer_too_large').length).toBeGreaterThanOrEqual(8);
  });

  test('a job that cannot be read ends once it can', async () => {
    upstream.script(staysRunning);
    upstream.always('events', ({ json }) => json(503, {}));
    const { body } = await postPrompt(holdover.url, { prompt: flat() }, { headers: KEY });
    upstream.always('get', JSON_TEXT);
    await expect.poll(() => sockets.size, { timeout: 20_000 }).toBeGreaterThan(1);
    honestly('get');
    finish(upstream, upstream.jobs.get(body.prompt_id)!);
    const ended = async () =>
      Object.keys(await getJson(`${holdover.url}/history/${body.prompt_id}`, KEY));
    await expect.poll(ended, { timeout: 20_000 }).toEqual([body.prompt_id]);
    expect(taken()).toBeLessThan(LIMITS.maxAnswerBytes + ON_THE_WAY);
  });
});

describe('of events', () => {
  const SSE = `${OK}Content-Type: text/event-stream\r\n\r\n`;
  test.each([
    ['many lines of data', endless(`${SSE}event: preview\n`, 'data: x\n')],
    ['empty lines of data', endless(SSE, 'data:\n')],
    ['an unknown field', endless(SSE, 'x')],
  ])('%s: the stream is left, and the job ends as its own record says', async (_what, hook) => {
    const before = lines('upstream.event_too_large').length;
    upstream.script(staysRunning);
    upstream.always('events', hook);
    const memory = await resident();
    const { body } = await postPrompt(holdover.url, { prompt: flat() }, { headers: KEY });
    await expect
      .poll(() => lines('upstream.event_too_large').length, { timeout: 20_000 })
      .toBeGreaterThan(before);
    finish(upstream, upstream.jobs.get(body.prompt_id)!);
    const word = async () =>
      (await getJson(`${holdover.url}/api/job/${body.prompt_id}/status`, KEY)).status;
    await expect.poll(word, { timeout: 20_000 }).toBe('success');
    // A stream like that is not opened again and again.
    expect(sockets.size).toBeLessThanOrEqual(2);
    expect(taken()).toBeLessThan(LIMITS.maxEventChars + ON_THE_WAY);
    expect((await resident()) - memory).toBeLessThan(100 * MIB);
  });
});
