import { once } from 'node:events';
import { type RequestListener, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { expect, onTestFinished, test } from 'vitest';
import { sendJsonPieces } from '../../src/http/json-stream.ts';

const MEBIBYTE = 1024 * 1024;

/** The address of a server that answers everything with these pieces. */
async function serving(pieces: () => Iterator<string> | AsyncIterator<string>): Promise<string> {
  const app = new Koa();
  app.silent = true;
  app.use((ctx) => sendJsonPieces(ctx, pieces()));
  const server = createServer(app.callback() as RequestListener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

function* repeated(piece: string, times: number, pulled: { count: number }): Generator<string> {
  yield '[';
  for (let n = 0; n < times; n += 1) {
    pulled.count += 1;
    yield piece;
  }
  yield '0]';
}

test('a small answer has its length, as ever', async () => {
  const answer = await fetch(await serving(() => ['{"a":', '"ü"', '}'].values()));
  expect(answer.headers.get('content-length')).toBe('15');
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(await answer.text()).toBe('{"a": "\\u00fc"}');
});

test('a large answer is the same text, whatever its characters', async () => {
  const piece = `"${'😀ü'.repeat(100_000)}",`;
  const url = await serving(() => repeated(piece, 5, { count: 0 }));
  const answer = await fetch(url);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  const text = await answer.text();
  expect(text).toMatch(/^[ -~]+$/);
  expect(JSON.parse(text)).toEqual(JSON.parse(`[${piece.repeat(5)}0]`));
});

test('six entries of 95 MB, more than one text can be, arrive whole', async () => {
  const piece = `"${'x'.repeat(95 * MEBIBYTE)}",`;
  const url = await serving(() => repeated(piece, 6, { count: 0 }));
  let bytes = 0;
  for await (const chunk of (await fetch(url)).body ?? []) bytes += chunk.length;
  expect(bytes).toBe(6 * (piece.length + 1) + 3);
}, 60_000);

test('a client that does not read is sent what fits on the way, and no piece is made for it', async () => {
  const pulled = { count: 0 };
  const url = await serving(() => repeated(`"${'x'.repeat(MEBIBYTE)}",`, 200, pulled));
  const asked = request(url).end();
  const [answer] = await once(asked, 'response');
  answer.pause();
  let before = -1;
  await expect
    .poll(
      () => {
        const isQuiet = pulled.count === before;
        before = pulled.count;
        return isQuiet;
      },
      { interval: 300 },
    )
    .toBe(true);
  // The socket buffers of both sides take a few MB at most.
  expect(pulled.count).toBeLessThan(20);
  let bytes = 0;
  for await (const chunk of answer) bytes += chunk.length;
  expect([pulled.count, bytes]).toEqual([200, 200 * (MEBIBYTE + 4) + 3]);
});

test('one whose client leaves is ended, and so are its pieces', async () => {
  let isOver = false;
  function* endless(): Generator<string> {
    try {
      for (;;) yield 'x'.repeat(MEBIBYTE);
    } finally {
      isOver = true;
    }
  }
  const asked = request(await serving(endless)).end();
  const [answer] = await once(asked, 'response');
  answer.destroy();
  await expect.poll(() => isOver).toBe(true);
});

test('one that breaks half-way is cut off, never passed for whole', async () => {
  async function* broken(): AsyncGenerator<string> {
    yield 'x'.repeat(2 * MEBIBYTE);
    throw new Error('the ledger is away');
  }
  const answer = await fetch(await serving(broken));
  await expect(answer.text()).rejects.toThrow('terminated');
});
