import { once } from 'node:events';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Answer } from '../../src/http/answer.ts';
import { headerLines } from '../../src/http/client-connection.ts';
import { dispositionOf } from '../../src/http/file-headers.ts';
import { requestText, say } from '../support/clients/raw-socket.ts';

const BODY = 'the body';
type Send = (answer: Answer, disposition: string) => void;

/** Every way in which a handler can write an answer with a length. */
const WAYS: Readonly<Record<string, Send>> = {
  'the body at once': (answer, disposition) =>
    answer.setHeader('Content-Disposition', disposition).end(Buffer.from(BODY)),
  'a text at once': (answer, disposition) =>
    answer.setHeader('Content-Disposition', disposition).end(BODY),
  'the length first': (answer, disposition) => {
    answer.setHeader('Content-Length', BODY.length);
    answer.setHeader('content-disposition', disposition);
    answer.write(Buffer.from(BODY));
    answer.end();
  },
  'the length first, then the body at once': (answer, disposition) => {
    answer.setHeader('Content-Length', BODY.length);
    answer.setHeader('Content-Disposition', disposition).end(Buffer.from(BODY));
  },
  'a head of its own': (answer, disposition) => {
    answer.setHeader('Content-Length', BODY.length);
    answer.setHeader('Content-Disposition', disposition).writeHead(200, 'OK');
    answer.end(Buffer.from(BODY));
  },
};

let server: Server<never, typeof Answer>;
let next: { readonly send: Send; readonly disposition: string };
beforeAll(async () => {
  server = createServer({ ServerResponse: Answer }, (_request, answer) =>
    next.send(answer, next.disposition),
  ) as typeof server;
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => server.close());

test.each(Object.entries(WAYS))('with %s a name leaves as its UTF-8 bytes', async (_, send) => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), async (name) => {
      next = { send, disposition: dispositionOf(`上不${name}`) };
      const { port } = server.address() as AddressInfo;
      const { headers, body } = await say(port, requestText('/'));
      expect(headers['content-disposition']).toBe(next.disposition);
      expect(body).toBe(BODY);
    }),
    { numRuns: 30 },
  );
});

test('a head that is written to a connection has one line for each header', () => {
  expect(headerLines({ A: '1\r\nSet-Cookie: a=b\0', B: '2' })).toEqual([
    'A: 1??Set-Cookie: a=b?',
    'B: 2',
  ]);
});
