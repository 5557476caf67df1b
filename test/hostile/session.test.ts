// When a socket that swallows nothing is given up, and when not yet.
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type UpgradedSocket, SocketConnection } from '../../src/sockets/connection.ts';

const SECOND = 1000;
const MEBIBYTE = 1024 * 1024;

/** A WebSocket whose peer swallows only when told to. */
class FakeSocket extends EventEmitter {
  readonly readyState = WebSocket.OPEN;
  readonly sent: (string | Buffer)[] = [];
  readonly pending: (() => void)[] = [];
  bufferedAmount = 0;
  terminated = false;

  send(frame: string | Buffer, done = () => {}): void {
    this.sent.push(frame);
    this.bufferedAmount += frame.length;
    this.pending.push(() => {
      this.bufferedAmount -= frame.length;
      done();
    });
  }
  swallow(): void {
    this.pending.shift()?.();
  }
  ping(): void {}
  close(): void {}
  terminate(): void {
    this.terminated = true;
  }
}

function open() {
  const socket = new FakeSocket();
  const clock = { nowMs: 0 };
  const connection = { ws: socket } as unknown as UpgradedSocket;
  const session = new SocketConnection(connection, {
    user: 'u',
    sid: 's',
    dialect: 'local',
    serverFlags: {},
    now: () => clock.nowMs,
    onClose: () => {},
  });
  return { socket, clock, session };
}

test('a burst of several megabytes at once is not held against a socket', () => {
  const { socket, session } = open();
  for (let i = 0; i < 20; i++) session.sendText('x'.repeat(MEBIBYTE));
  expect(socket).toMatchObject({ terminated: false, sent: { length: 20 } });
});

test('half a minute without swallowing anything, while much waits, is the end', () => {
  const { socket, clock, session } = open();
  session.sendText('x'.repeat(2 * MEBIBYTE));
  clock.nowMs = 29 * SECOND;
  session.sendText('still');
  expect(socket.terminated).toBe(false);
  clock.nowMs = 31 * SECOND;
  session.sendText('no more');
  expect(socket).toMatchObject({ terminated: true, sent: { length: 2 } });
});

test('a slow socket that swallows now and then is spared', () => {
  const { socket, clock, session } = open();
  for (let i = 0; i < 10; i++) {
    session.sendText('x'.repeat(MEBIBYTE));
    session.sendText('x'.repeat(MEBIBYTE));
    clock.nowMs += 20 * SECOND;
    socket.swallow();
  }
  expect(socket).toMatchObject({ terminated: false, sent: { length: 20 } });
});

test('a quiet socket may wait for long with little to swallow', () => {
  const { socket, clock, session } = open();
  for (let i = 0; i < 100; i++) {
    clock.nowMs += 8 * SECOND;
    session.sendText('status');
  }
  expect(socket.terminated).toBe(false);
});

test.each([
  ['texts', (session: SocketConnection) => session.sendText('x'.repeat(MEBIBYTE))],
  ['results', (session: SocketConnection) => session.sendBinary(Buffer.alloc(MEBIBYTE))],
] as const)('no more than so much ever waits: %s', (_, send) => {
  const { socket, session } = open();
  for (let i = 0; i < 200 && !socket.terminated; i++) send(session);
  expect(socket.terminated).toBe(true);
  expect(socket.bufferedAmount).toBeLessThan(100 * MEBIBYTE);
});

test('previews of a socket with a backlog are dropped but the latest, which comes when there is room', () => {
  const { socket, session } = open();
  session.sendText('x'.repeat(MEBIBYTE));
  for (const name of ['one', 'two', 'three']) session.sendPreview('p', Buffer.from(name));
  expect(socket.sent).toHaveLength(1);
  socket.swallow();
  expect(socket.sent.slice(1).map((frame) => frame.toString())).toEqual(['three']);
});

test('a socket that answers no ping by the next one is ended', () => {
  const { socket, session } = open();
  session.ping();
  expect(socket.terminated).toBe(false);
  socket.emit('pong');
  session.ping();
  expect(socket.terminated).toBe(false);
  session.ping();
  expect(socket.terminated).toBe(true);
});

test('of a prompt only the latest progress_state waits for room, and it comes before the end', () => {
  const { socket, session } = open();
  const told = () => socket.sent.slice(1).map((frame) => frame.toString());
  let written = 0;
  const state = (name: string) => () => {
    written++;
    return name;
  };
  session.sendText('x'.repeat(MEBIBYTE));
  for (const name of ['one', 'two', 'three']) session.sendState('p', state(name));
  session.sendState('q', state('other'));
  session.flushState('p');
  expect(told()).toEqual(['three']);
  socket.swallow();
  expect(told()).toEqual(['three', 'other']);
  session.sendState('p', state('four'));
  expect(told()).toEqual(['three', 'other', 'four']);
  expect(written).toBe(3);
});
