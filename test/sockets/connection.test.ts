// A connection answers what a client negotiates, and closes clients that flood or stop answering.
import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { frameEntry } from '../../src/console/traffic/frames.ts';
import type { SocketFrame } from '../../src/observability/described-frame.ts';
import { SocketConnection, type UpgradedSocket } from '../../src/sockets/connection.ts';

const KIB = 1024;

function open(
  onFrame?: (frame: SocketFrame) => void,
  traits: { readonly mayBeSilent?: boolean } = {},
) {
  const sent: (string | Buffer)[] = [];
  const calls: string[] = [];
  const pending: (() => void)[] = [];
  const write = (piece: string | Buffer, done?: () => void): void => {
    sent.push(piece);
    if (done) pending.push(done);
  };
  const ws = Object.assign(new EventEmitter(), {
    readyState: WebSocket.OPEN as number,
    bufferedAmount: 0,
    send: write,
    ping: () => void calls.push('ping'),
    close: (code: number) => void calls.push(`close ${code}`),
    terminate: () => void calls.push('terminate'),
  });
  let nowMs = 0;
  let dropped = 0;
  const connection = new SocketConnection(
    { ws, socket: new PassThrough() } as unknown as UpgradedSocket,
    { user: 'u', sid: 's', dialect: 'local', ...traits },
    {
      serverFlags: { a: 1 },
      now: () => nowMs,
      onClose: () => void calls.push('closed'),
      onDrop: () => dropped++,
      frameObserver: onFrame && { isOn: () => true, record: onFrame },
    },
  );
  return {
    connection,
    ws,
    sent,
    calls,
    dropped: () => dropped,
    pass: (ms: number) => (nowMs += ms),
    flush: () => pending.splice(0).forEach((done) => done()),
    say: (message: unknown) => ws.emit('message', Buffer.from(JSON.stringify(message)), false),
  };
}

const preview = (size = 10) => Buffer.alloc(size);

test('the first object decides about previews with metadata', () => {
  const { connection, say, sent } = open();
  say('no object');
  say({ type: 'feature_flags', data: { supports_preview_metadata: true } });
  say({ type: 'feature_flags', data: { supports_preview_metadata: false } });
  expect(connection.wantsMetadata()).toBe(true);
  expect(sent).toEqual(['{"type": "feature_flags", "data": {"a": 1}}']);
});

test('a message that is no negotiation costs no parsing: a long one, and any after the first', () => {
  const { ws, sent, say } = open();
  say({ type: 'feature_flags', data: {}, rest: 'x'.repeat(20_000) });
  expect(sent).toEqual([]);
  say({ type: 'feature_flags', data: {} });
  expect(sent).toHaveLength(1);
  let reads = 0;
  const unread = Object.assign(Buffer.from('{}'), { toString: () => `${reads++}` });
  ws.emit('message', unread, false);
  expect(reads).toBe(0);
});

test('of a long message only the beginning is recorded', () => {
  const frames: SocketFrame[] = [];
  const { say, ws } = open((frame) => void frames.push(frame));
  say({ type: 'short' });
  const bytes = Buffer.from('ä'.repeat(1024 * KIB));
  ws.emit('message', bytes, false);
  const [short, long] = frames.filter(({ direction }) => direction === 'in');
  expect(short).not.toHaveProperty('totalBytes');
  expect(short?.payload).toBe('{"type":"short"}');
  expect(long).toMatchObject({ payload: 'ä'.repeat(8 * KIB), totalBytes: bytes.length });
  const { bytes: shown, body } = frameEntry(long!);
  expect([shown, body.totalBytes, body.capturedBytes]).toEqual([
    bytes.length,
    bytes.length,
    16 * KIB,
  ]);
});

test('only strict true turns previews with metadata on', () => {
  const { connection, say } = open();
  say({ type: 'feature_flags', data: { supports_preview_metadata: 1 } });
  expect(connection.wantsMetadata()).toBe(false);
});

test('a slow socket gets the latest preview only, and the others count as dropped', () => {
  const { connection, ws, sent, dropped, flush } = open();
  ws.bufferedAmount = 300 * KIB;
  connection.sendBinary(preview());
  connection.sendPreview('p', preview(1));
  connection.sendPreview('p', preview(2));
  expect(sent).toHaveLength(1);
  expect(dropped()).toBe(1);
  ws.bufferedAmount = 0;
  flush();
  expect(sent).toHaveLength(2);
  expect(dropped()).toBe(1);
});

test('a delayed state is encoded when it is sent, at the latest at the end of its prompt', () => {
  const { connection, ws, sent } = open();
  const encoded: string[] = [];
  const state = (name: string) => () => {
    encoded.push(name);
    return name;
  };
  ws.bufferedAmount = 300 * KIB;
  connection.sendState('p', state('first'));
  connection.sendState('p', state('second'));
  expect(encoded).toEqual([]);
  connection.flushState('p');
  expect(encoded).toEqual(['second']);
  expect(sent).toHaveLength(1);
});

test('the preview of a node that has ended is dropped', () => {
  const { connection, ws, sent, flush } = open();
  ws.bufferedAmount = 300 * KIB;
  connection.sendBinary(preview());
  connection.sendPreview('p', preview());
  connection.discardPreview('p');
  ws.bufferedAmount = 0;
  flush();
  expect(sent).toHaveLength(1);
});

test('a client that answers no ping is closed at the next one', () => {
  const { connection, ws, calls } = open();
  connection.ping();
  ws.emit('pong');
  connection.ping();
  connection.ping();
  expect(calls).toEqual(['ping', 'ping', 'terminate']);
});

// A synchronous WebSocket library reads, and answers pings, only while its program waits for a prompt.
test('a client that need not answer pings stays connected, and counts as silent until it answers', () => {
  const { connection, ws, calls } = open(undefined, { mayBeSilent: true });
  const silent: boolean[] = [];
  for (const answer of [true, false, false, false, true]) {
    connection.ping();
    silent.push(connection.isSilent());
    if (answer) ws.emit('pong');
  }
  silent.push(connection.isSilent());
  expect(silent).toEqual([false, false, true, true, true, false]);
  expect(calls).toEqual(Array(5).fill('ping'));
});

test('a socket that accepts nothing for 30 s with a mebibyte pending is given up', () => {
  const { connection, ws, calls, pass } = open();
  connection.sendText('first');
  ws.bufferedAmount = 2 * 1024 * KIB;
  pass(29_000);
  connection.sendText('still there');
  expect(calls).toEqual([]);
  pass(2000);
  connection.sendText('too late');
  expect(calls).toEqual(['terminate']);
});
