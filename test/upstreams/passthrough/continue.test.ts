// A service that says `100 Continue` without a request: the answer is the one that follows.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Holdover } from '../../support/processes/holdover.ts';
import { requestText, say } from '../../support/clients/raw-socket.ts';
import { expectHealthy } from '../../support/processes/expect-healthy.ts';
import { type Origin, openBehindOrigin } from './origin.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const LONG = 'HTTP/1.1 100 \r\nX-Odd: 1\r\nX-Even: 2\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody';

let origin: Origin;
let holdover: Holdover;
let close: () => Promise<void>;
beforeAll(async () => void ({ origin, holdover, close } = await openBehindOrigin()));
afterAll(() => close());
afterEach(() => expectHealthy(holdover));

test.each([
  ['at once', [CONTINUE + ANSWER]],
  ['before the answer', [CONTINUE, ANSWER]],
  ['twice, with headers', [CONTINUE + LONG, ANSWER]],
  ['in pieces', ['HTT', 'P/1.1 10', '0 Continue\r\n\r', '\n', ANSWER]],
])('a call is answered when it is said %s', async (how, pieces) => {
  const path = `/proxy/${how.replaceAll(' ', '-')}`;
  origin.on(path, async ({ socket }) => {
    socket.setNoDelay();
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  const before = origin.heard.length;
  for (const method of ['POST', 'PUT', 'GET']) {
    const body = method === 'GET' ? '' : '{"seed":1}';
    const answer = await say(holdover.port, requestText(path, { method, body }));
    expect([method, answer.status, answer.body]).toEqual([method, 200, 'body']);
  }
  expect(origin.heard.length).toBe(before + 3);
});
