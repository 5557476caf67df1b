// A service that says `100 Continue` without a request: the answer is the one that follows.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { skipContinue } from '../../../src/upstreams/passthrough/fast-relay.ts';
import type { Holdover } from '../../support/processes/holdover.ts';
import { requestText, say } from '../../support/clients/raw-socket.ts';
import { expectHealthy } from '../../support/processes/expect-healthy.ts';
import { type Origin, openBehindOrigin } from './origin.ts';

const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const LONG = 'HTTP/1.1 100 \r\nX-Odd: 1\r\nX-Even: 2\r\n\r\n';
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody';

describe.each([
  ['small', []],
  ['flowing', ['Accept: text/event-stream']],
])('a %s call', (way, headers) => {
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
  ])('is answered when it is said %s', async (how, pieces) => {
    const path = `/proxy/${way}-${how.replaceAll(' ', '-')}`;
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
      const answer = await say(holdover.port, requestText(path, { method, headers, body }));
      expect([method, answer.status, answer.body]).toEqual([method, 200, 'body']);
    }
    expect(origin.heard.length).toBe(before + 3);
  });
});

describe('on one connection', () => {
  function connection() {
    const coming: string[] = [];
    const socket = {
      bytesWritten: 0,
      read(): Buffer | null {
        const text = coming.shift();
        return text === undefined ? null : Buffer.from(text);
      },
    };
    skipContinue(socket);
    return {
      call: () => void (socket.bytesWritten += 1),
      hear: (text: string): string | undefined => {
        coming.push(text);
        return (socket.read() as Buffer | null)?.toString();
      },
    };
  }

  test('each call may be answered this way', () => {
    const { call, hear } = connection();
    for (let i = 0; i < 3; i += 1) {
      call();
      expect(hear(CONTINUE)).toBeUndefined();
      expect(hear(ANSWER)).toBe(ANSWER);
    }
  });

  test('a body that looks like one is a body', () => {
    const { call, hear } = connection();
    call();
    expect(hear('HTTP/1.1 200 OK\r\n\r\n')).toBe('HTTP/1.1 200 OK\r\n\r\n');
    expect(hear(CONTINUE)).toBe(CONTINUE);
  });

  test('other answers before the answer are passed on', () => {
    const { call, hear } = connection();
    call();
    const hints = 'HTTP/1.1 103 Early Hints\r\n\r\n';
    expect(hear(CONTINUE + hints)).toBe(hints);
  });

  test('one without end is not waited for', () => {
    const { call, hear } = connection();
    call();
    const endless = `HTTP/1.1 100 Continue\r\nX: ${'x'.repeat(20_000)}`;
    expect(hear(endless)).toBe(endless);
  });
});
