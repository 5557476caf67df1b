// A server that stops to listen takes the connections that the system has accepted for it.
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpServer, listen, stopListening } from '../../src/http/server.ts';

const CALL = 'GET / HTTP/1.1\r\nHost: holdover\r\nConnection: close\r\n\r\n';

async function open() {
  const serve: RequestListener = (_, response) => response.end();
  const server = createHttpServer(serve);
  const port = await listen(server, { listen: '127.0.0.1', port: 0 });
  onTestFinished(() => void server.close());
  /** The status of a call on a connection of its own, or why there is none. The system connects it at once. */
  async function call(): Promise<string> {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8');
    socket.write(CALL);
    const answer = once(socket, 'data') as Promise<[string]>;
    return answer.then(
      ([head]) => head.split(' ', 2)[1] ?? '',
      ({ code }: NodeJS.ErrnoException) => code ?? '',
    );
  }
  return { server, call };
}

test('calls on connections that wait when it stops are answered; later ones are refused', async () => {
  const { server, call } = await open();
  const waiting = Array.from({ length: 50 }, call);
  await stopListening(server);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['200']));
  expect(await call()).toBe('ECONNREFUSED');
});

test('it stops also where connections keep coming', async () => {
  const { server, call } = await open();
  const answers: Promise<string>[] = [];
  /** One in each turn of the event loop. */
  function come(): void {
    if (!server.listening) return;
    answers.push(call());
    setImmediate(come);
  }
  come();
  await stopListening(server);
  expect(server.listening).toBe(false);
  await Promise.all(answers);
});
