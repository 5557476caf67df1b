// Passing through what does not end soon: events one by one, and files larger than any buffer.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type ServerResponse, request } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { dial, requestText } from '../support/clients/raw-socket.ts';
import { expectHealthy } from '../support/processes/expect-healthy.ts';
import { type Origin, startOrigin } from './origin.ts';
import { growthMb } from '../support/processes/resident-memory.ts';

vi.setConfig({ testTimeout: 60_000 });

const MEBIBYTE = 1024 * 1024;
const SIZE = 200 * MEBIBYTE;
/** Uncollected garbage counts as well; a body held in memory would take twice this. */
const FLAT_MB = 100;
const PIECE = Buffer.alloc(MEBIBYTE, 'holdover');

let origin: Origin;
let holdover: Holdover;

beforeAll(async () => {
  origin = await startOrigin();
  holdover = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
});
afterAll(async () => {
  await holdover.dispose();
  await origin.close();
});
afterEach(() => expectHealthy(holdover));

function* pieces(): Generator<Buffer> {
  for (let sent = 0; sent < SIZE; sent += PIECE.length) yield PIECE;
}

async function digestOf(stream: AsyncIterable<unknown>): Promise<{ bytes: number; hash: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += (chunk as Buffer).length;
    hash.update(chunk as Buffer);
  }
  return { bytes, hash: hash.digest('hex') };
}

test('events arrive one by one: the head before the first, each before the next', async () => {
  let stream: ServerResponse | undefined;
  origin.on('/events', (_req, res) => {
    stream = res.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache',
    });
    stream.flushHeaders();
  });
  const wire = await dial(holdover.port);
  wire.send(requestText('/api/v2/jobs/j/events', { headers: ['Accept-Encoding: gzip, br'] }));
  const head = await wire.until('\r\n\r\n');
  expect(head.headers).toMatchObject({ 'content-type': 'text/event-stream' });
  expect(head.headers['content-encoding']).toBeUndefined();
  for (const event of [': keep-alive\n\n', 'event: status\ndata: {"status":"running"}\n\n']) {
    stream?.write(event);
    await wire.until(event);
  }
  stream?.end('event: status\ndata: {"status":"succeeded"}\n\n');
  const { raw } = await wire.answer();
  expect(raw).toMatch(/\r\n0\r\n\r\n$/);
});

test('a server told to stop does not wait for an open stream', async () => {
  const other = await startHoldover({ upstream: 'embedded', args: ['--upstream', origin.url] });
  origin.on('/forever', (_req, res) => res.write('data: 1\n\n'));
  const wire = await dial(other.port);
  wire.send(requestText('/api/v2/forever'));
  await wire.until('data: 1');
  expect(await other.terminate()).toBe(0);
  expect((await wire.answer()).raw).not.toMatch(/\r\n0\r\n/);
  await other.dispose();
});

test('a download far larger than memory allows keeps memory flat', async () => {
  const expected = await digestOf(Readable.from(pieces()));
  origin.on('/content', (_req, res) => void pipeline(Readable.from(pieces()), res).catch(() => {}));
  const growth = await growthMb(holdover, async () => {
    const { body } = await fetch(`${holdover.url}/api/v2/assets/a/content`);
    expect(await digestOf(body as unknown as AsyncIterable<unknown>)).toEqual(expected);
  });
  expect(growth).toBeLessThan(FLAT_MB);
});

test('so does an upload', async () => {
  const expected = await digestOf(Readable.from(pieces()));
  origin.on('/assets', async (req, res) => res.end(JSON.stringify(await digestOf(req))));
  const growth = await growthMb(holdover, async () => {
    const headers = { 'Content-Length': SIZE };
    const call = request(`${holdover.url}/api/v2/assets`, { method: 'POST', headers });
    const answered = once(call, 'response');
    await pipeline(Readable.from(pieces()), call);
    const [answer] = await answered;
    expect(JSON.parse((await answer.toArray()).join(''))).toEqual(expected);
  });
  expect(growth).toBeLessThan(FLAT_MB);
});

test('a client that does not read stops the service from sending', async () => {
  let sent = 0;
  origin.on('/unread', (_req, res) => {
    const counted = Readable.from(pieces()).on('data', () => (sent += PIECE.length));
    pipeline(counted, res).catch(() => {});
  });
  const wire = await dial(holdover.port);
  wire.send(requestText('/api/v2/unread'));
  await wire.until('HTTP/1.1 200');
  wire.socket.pause();
  let before = -1;
  await expect
    .poll(() => [before, (before = sent)].every((bytes) => bytes === sent), {
      interval: 500,
      timeout: 20_000,
    })
    .toBe(true);
  expect(sent).toBeLessThan(SIZE / 4);
  wire.reset();
});

test('a service that does not read stops the client from sending', async () => {
  origin.on('/paused', (req) => void req.pause());
  const wire = await dial(holdover.port);
  const headers = [`Content-Length: ${SIZE}`];
  wire.send(requestText('/api/v2/paused', { method: 'POST', headers }));
  const growth = await growthMb(holdover, async () => {
    for (const piece of pieces()) wire.send(piece);
    let before = -1;
    const read = () => SIZE - wire.socket.writableLength;
    await expect
      .poll(() => [before, (before = read())].every((bytes) => bytes === read()), {
        interval: 500,
        timeout: 20_000,
      })
      .toBe(true);
    expect(read()).toBeLessThan(SIZE / 4);
  });
  expect(growth).toBeLessThan(FLAT_MB);
  wire.reset();
});
