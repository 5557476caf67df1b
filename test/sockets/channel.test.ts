// A channel keeps what a socket still has to receive, and knows what sockets of other processes have.
import { expect, test } from 'vitest';
import type { V1Message } from '../../src/protocol/v1.ts';
import { Channel } from '../../src/sockets/channel.ts';
import { SocketConnection } from '../../src/sockets/connection.ts';
import type { Frame } from '../../src/sockets/frame.ts';
import type { ReceiverGroup } from '../../src/sockets/delivery.ts';
import { fakeSocket } from '../support/clients/fake-socket.ts';

const node = (id: string | null): Frame => ({
  kind: 'json',
  message: { type: 'executing', data: { node: id, prompt_id: 'p' } } as V1Message,
});
const step = (value: number): Frame => ({
  kind: 'step',
  classTypes: new Map(),
  progress: { type: 'progress', data: { value, max: 9, prompt_id: 'p', node: '1' } },
});

function open(clientId: string | null = 'own') {
  const connections = new Set<SocketConnection>();
  const caughtUp: string[] = [];
  const channel = new Channel(
    { user: 'u', clientId, promptId: 'p' },
    {
      connections: () => connections,
      previewMethod: 'auto',
      onCaughtUp: (group: ReceiverGroup, position) => caughtUp.push(`${group} ${position}`),
    },
  );
  function connect(sid: string, dialect: 'local' | 'hosted' = 'local') {
    const socket = fakeSocket();
    const connection = new SocketConnection(socket.connection, {
      user: 'u',
      sid,
      dialect,
      mayBeSilent: true,
      serverFlags: {},
      now: () => 0,
      onClose: () => connections.delete(connection),
    });
    channel.replayTo(connection);
    connections.add(connection);
    return { ...socket, ping: () => connection.ping() };
  }
  return { channel, connect, caughtUp };
}

test('a connected socket of the client gets each frame at once, and nothing is kept', () => {
  const { channel, connect } = open();
  const socket = connect('own');
  channel.send(node('1'), 1);
  channel.send(step(1), 2);
  expect(socket.heard()).toEqual(['executing:1', 'progress:1/9']);
  expect(channel.hasUnreceived()).toBe(false);
  expect(channel.receivedBy(2)).toEqual(['client']);
  expect(channel.receivedBy(1)).toEqual([]);
});

test('a late socket of the client gets everything it missed, once, and that is reported', () => {
  const { channel, connect, caughtUp } = open();
  channel.send(node('1'), 1);
  channel.send(step(1), 2);
  expect(connect('own').heard()).toEqual(['executing:1', 'progress:1/9']);
  expect(caughtUp).toEqual(['client 2']);
  expect(connect('own').heard()).toEqual(['executing:1']);
});

test('a socket that answers no pings gets each frame, and they are kept for the return of its client', () => {
  const { channel, connect } = open();
  const silent = connect('own');
  channel.send(node('1'), 1);
  silent.ping();
  silent.ping();
  channel.send(step(1), 2);
  channel.send(node(null), 3);
  expect(silent.heard()).toEqual(['executing:1', 'progress:1/9', 'executing:null']);
  expect(connect('own').heard()).toEqual(['executing:1', 'progress:1/9', 'executing:null']);
  expect(channel.hasUnreceived()).toBe(false);
});

test('a returning socket learns the running node before the frames it missed', () => {
  const { channel, connect } = open();
  const first = connect('own');
  channel.send(node('1'), 1);
  first.close();
  channel.send(step(1), 2);
  expect(connect('own').heard()).toEqual(['executing:1', 'progress:1/9']);
});

test('a hosted socket with another id gets the frames, and they are kept for the client', () => {
  const { channel, connect } = open();
  channel.send(node('1'), 1);
  expect(connect('other', 'hosted').heard()).toEqual(['executing:1']);
  expect(channel.hasUnreceived()).toBe(true);
  expect(connect('another', 'hosted').heard()).toEqual([]);
  expect(connect('own').heard()).toEqual(['executing:1']);
  expect(channel.hasUnreceived()).toBe(false);
});

test('frames that the client received from another process are not kept', () => {
  const { channel, connect } = open();
  channel.send(node('1'), 1);
  channel.send(step(1), 2);
  channel.discardReceived('client', 1);
  expect(connect('own').heard()).toEqual(['executing:1', 'progress:1/9']);
});

test('a process that subscribes late does not repeat what sockets had before', () => {
  const { channel, connect } = open();
  const socket = connect('own');
  channel.skipReceived({ client: 2, hosted: 0 }, 'later');
  channel.send(node('1'), 2);
  channel.send(step(1), 3);
  expect(socket.heard()).toEqual(['progress:1/9']);
});

test('a process that subscribes at the start sends everything to its own sockets', () => {
  const { channel, connect } = open();
  const socket = connect('own');
  channel.skipReceived({ client: 2, hosted: 0 }, 'its start');
  channel.send(node('1'), 2);
  expect(socket.heard()).toEqual(['executing:1']);
});

test('a lazy frame is loaded only when a socket is about to connect', async () => {
  const { channel, connect } = open();
  let loads = 0;
  channel.sendLater(async () => {
    loads++;
    return node('7');
  }, 1);
  expect(loads).toBe(0);
  expect(channel.hasUnreceived()).toBe(true);
  await channel.preload();
  expect(connect('own').heard()).toEqual(['executing:7']);
  expect(loads).toBe(1);
});

test('a lazy frame that comes while earlier ones are loaded is loaded too', async () => {
  const { channel, connect } = open();
  channel.sendLater(async () => {
    channel.sendLater(async () => node('8'), 2);
    return node('7');
  }, 1);
  await channel.preload();
  expect(connect('own').heard()).toEqual(['executing:7', 'executing:8']);
});

test('a fetched result ends the waiting for a socket, also for later frames', () => {
  const { channel, connect } = open();
  channel.send(node('1'), 1);
  channel.markFetched();
  channel.send(step(1), 2);
  expect(channel.hasUnreceived()).toBe(false);
  const late = connect('own');
  channel.send(node(null), 3);
  expect(late.heard()).toEqual([]);
});

test('a socket that was there before the result was fetched gets the last frame', () => {
  const { channel, connect } = open();
  const socket = connect('own');
  channel.send(node('1'), 1);
  channel.markFetched();
  channel.send(node(null), 2);
  expect(socket.heard()).toEqual(['executing:1', 'executing:null']);
});

test('a superseded prompt without a client id keeps nothing for a late socket', () => {
  const { channel, connect } = open(null);
  channel.send(node('1'), 1);
  channel.supersede();
  channel.send(step(1), 2);
  expect(channel.unreceivedBytes()).toBe(0);
  expect(connect('any', 'hosted').heard()).toEqual([]);
});

test('at the memory limit starts, nodes and ends stay; steps go', () => {
  const { channel, connect } = open();
  channel.send(node('1'), 1);
  channel.send(step(1), 2);
  channel.send(node(null), 3);
  channel.dropDetails();
  expect(connect('own').heard()).toEqual(['executing:1', 'executing:null']);
});
