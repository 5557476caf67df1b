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
    const opener = { user: 'u', sid, dialect, mayBeSilent: true };
    const connection = new SocketConnection(socket.connection, opener, {
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
  expect(channel.undelivered.size > 0).toBe(false);
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
  expect(channel.undelivered.size > 0).toBe(true);
  await channel.undelivered.loadAll();
  expect(connect('own').heard()).toEqual(['executing:7']);
  expect(loads).toBe(1);
});

test('a lazy frame that comes while earlier ones are loaded is loaded too', async () => {
  const { channel, connect } = open();
  channel.sendLater(async () => {
    channel.sendLater(async () => node('8'), 2);
    return node('7');
  }, 1);
  await channel.undelivered.loadAll();
  expect(connect('own').heard()).toEqual(['executing:7', 'executing:8']);
});
