// The hub tells waiting sockets often enough that they are not forgotten, and frames do not wait for ever.
import type { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { mayBeSilent } from '../../src/auth/calling-client.ts';
import type { V1Message } from '../../src/protocol/v1.ts';
import type { Frame } from '../../src/sockets/frame.ts';
import { Hub } from '../../src/sockets/hub.ts';
import { fakeSocket, openFake } from '../support/clients/fake-socket.ts';

const SECOND = 1000;
const NODE: Frame = {
  kind: 'json',
  message: { type: 'executing', data: { node: '1', prompt_id: 'p' } } as V1Message,
};
const PREVIEW: Frame = {
  kind: 'picture',
  picture: {
    kind: 'sampler',
    nodeId: '1',
    displayNodeId: '1',
    mime: 'image/png',
    bytes: Buffer.of(1),
  },
};

let remaining = 0;
let presence: string[] = [];
let hub: Hub;

beforeEach(() => {
  vi.useFakeTimers();
  remaining = 0;
  presence = [];
  hub = new Hub({
    remaining: () => remaining,
    serverFlags: {},
    previewMethod: 'auto',
    now: Date.now,
    onPresenceChange: (user, isThere) => presence.push(`${user} ${isThere}`),
  });
});
afterEach(() => {
  hub.close();
  vi.useRealTimers();
});

test('a lazy frame of a prompt that comes while those of another are loaded is loaded too', async () => {
  const open = (promptId: string) => hub.channels.open({ user: 'u', clientId: 'c', promptId });
  const [one, other] = [open('one'), open('other')];
  one.sendLater(async () => {
    await Promise.resolve();
    other.sendLater(async () => NODE, 1);
    return NODE;
  }, 1);
  await hub.channels.preload('u');
  const socket = openFake(hub, { dialect: 'local', clientId: 'c' });
  expect(socket.heard()).toEqual(['executing:1', 'executing:1']);
});

test('a preview that comes while a socket is new is not sent before the frames that are kept', () => {
  const channel = hub.channels.open({ user: 'u', clientId: 'c', promptId: 'p' });
  channel.send(NODE, 1);
  const { connection, heard } = fakeSocket();
  const delayed = { ...connection, firstFrameDelayMs: 20 };
  hub.addConnection(delayed, { user: 'u', clientId: 'c', dialect: 'local' });
  channel.send(PREVIEW, 2);
  vi.advanceTimersByTime(21);
  expect(heard()).toEqual(['executing:1']);
  channel.send(PREVIEW, 3);
  expect(heard()).toEqual(['executing:1', 'binary:1']);
});

test('a socket that is new when a client fetches the result gets the frames that are kept', () => {
  hub.channels.open({ user: 'u', clientId: 'c', promptId: 'p' }).send(NODE, 1);
  const { connection, heard } = fakeSocket();
  const delayed = { ...connection, firstFrameDelayMs: 20 };
  hub.addConnection(delayed, { user: 'u', clientId: 'c', dialect: 'local' });
  hub.channels.discardFetched('u', ['p']);
  vi.advanceTimersByTime(21);
  expect(heard()).toEqual(['executing:1']);
});

/** A socket, and the number of `status` messages it got. */
function openCounting() {
  const socket = fakeSocket();
  let statuses = 0;
  const { ws } = socket.connection as unknown as { ws: { send: (text: string) => void } };
  const send = ws.send.bind(ws);
  ws.send = (text) => {
    if (text.includes('"status"')) statuses++;
    send(text);
  };
  hub.addConnection(socket.connection, { user: 'u', clientId: 'c', dialect: 'local' });
  return { socket, statuses: () => statuses };
}

test('a socket with pending prompts gets a status every seven seconds', () => {
  remaining = 1;
  const { statuses } = openCounting();
  expect(statuses()).toBe(1);
  vi.advanceTimersByTime(6 * SECOND);
  expect(statuses()).toBe(1);
  vi.advanceTimersByTime(2 * SECOND);
  expect(statuses()).toBe(2);
  vi.advanceTimersByTime(14 * SECOND);
  expect(statuses()).toBe(4);
});

test('a socket without pending prompts is left in peace', () => {
  const { statuses } = openCounting();
  vi.advanceTimersByTime(60 * SECOND);
  expect(statuses()).toBe(1);
});

test.each([
  ["Python's websocket-client", { origin: 'http://h:8188' }, true],
  ['a browser', { origin: 'http://h:8188', 'user-agent': 'Mozilla/5.0' }, false],
  ['ws', {}, false],
])('%s may be silent, by its handshake: %o: %s', (_name, headers, expected) => {
  expect(mayBeSilent({ headers })).toBe(expected);
});

// The original never pings, and simple clients take a ping for a message: a short session sees none.
test('a socket is pinged 30 seconds after it connected, whenever that is', () => {
  vi.advanceTimersByTime(25 * SECOND);
  const { connection } = openFake(hub, { dialect: 'local' });
  const { ws } = connection as unknown as { ws: { ping(): void; terminate(): void } };
  const calls: string[] = [];
  ws.ping = () => calls.push('ping');
  ws.terminate = () => calls.push('terminate');
  vi.advanceTimersByTime(29 * SECOND);
  expect(calls).toEqual([]);
  vi.advanceTimersByTime(SECOND);
  expect(calls).toEqual(['ping']);
  vi.advanceTimersByTime(30 * SECOND);
  expect(calls).toEqual(['ping', 'terminate']);
});

test('the first and the last socket of a user are reported', () => {
  const one = openFake(hub, { dialect: 'local', user: 'ann' });
  const two = openFake(hub, { dialect: 'local', user: 'ann' });
  one.close();
  expect(presence).toEqual(['ann true']);
  two.close();
  expect(presence).toEqual(['ann true', 'ann false']);
});

describe('where there is room for no more sockets,', () => {
  const closed: string[] = [];
  const join = (user: string, clientId: string) => {
    const socket = openFake(hub, { dialect: 'local', user, clientId, mayBeSilent: true });
    const { ws } = socket.connection as unknown as { ws: EventEmitter & { terminate(): void } };
    ws.terminate = () => {
      closed.push(`${user} ${clientId}`);
      socket.close();
    };
    return { ...socket, answersPing: () => ws.emit('pong') };
  };
  const room = (user: string, clientId: string | null, where: 'user' | 'server') =>
    hub.makeRoom({ user, clientId, where });

  beforeEach(() => void closed.splice(0));

  test('the oldest that answers no pings is closed, of another user only when the server is full', () => {
    const answering = join('ann', 'a');
    join('ann', 'b');
    join('bob', 'c');
    for (let pings = 0; pings < 2; pings++) {
      vi.advanceTimersByTime(30 * SECOND);
      answering.answersPing();
    }
    expect([room('ann', 'new', 'user'), room('ann', 'new', 'user')]).toEqual([true, false]);
    expect([room('ann', 'new', 'server'), room('ann', 'new', 'server')]).toEqual([true, false]);
    expect(closed).toEqual(['ann b', 'bob c']);
  });
});
