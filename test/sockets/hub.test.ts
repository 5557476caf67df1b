// The hub tells waiting sockets often enough that they are not forgotten, and frames do not wait for ever.
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { V1Message } from '../../src/protocol/v1.ts';
import type { Frame } from '../../src/sockets/frame.ts';
import { Hub } from '../../src/sockets/hub.ts';
import { fakeSocket, openFake } from '../support/clients/fake-socket.ts';

const SECOND = 1000;
const NODE: Frame = {
  kind: 'json',
  message: { type: 'executing', data: { node: '1', prompt_id: 'p' } } as V1Message,
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

test('frames of an ended prompt are kept for two minutes', () => {
  const [kept, forgotten] = ['kept', 'forgotten'].map((clientId) => {
    const channel = hub.openChannel({ user: 'u', clientId, promptId: clientId });
    channel.send(NODE, 0);
    hub.closeChannel(channel);
    return clientId;
  });
  vi.advanceTimersByTime(119 * SECOND);
  expect(openFake(hub, { dialect: 'local', clientId: kept ?? '' }).heard()).toEqual([
    'executing:1',
  ]);
  vi.advanceTimersByTime(2 * SECOND);
  expect(openFake(hub, { dialect: 'local', clientId: forgotten ?? '' }).heard()).toEqual([]);
});

test('the first and the last socket of a user are reported', () => {
  const one = openFake(hub, { dialect: 'local', user: 'ann' });
  const two = openFake(hub, { dialect: 'local', user: 'ann' });
  one.close();
  expect(presence).toEqual(['ann true']);
  two.close();
  expect(presence).toEqual(['ann true', 'ann false']);
});

test('only hosted sockets get notifications', () => {
  const local = openFake(hub, { dialect: 'local' });
  const hosted = openFake(hub, { dialect: 'hosted' });
  hub.notify('u', 'wait');
  expect(local.heard()).toEqual([]);
  expect(hosted.heard()).toEqual(['notification']);
});

test('counts sockets of one user and of all', () => {
  openFake(hub, { dialect: 'local', user: 'ann' });
  openFake(hub, { dialect: 'local', user: 'bob' });
  expect([hub.count('ann'), hub.count('eve'), hub.count()]).toEqual([1, 0, 2]);
});

test('closes the oldest open socket of a client id, and none of another one or of another user', () => {
  const open = (user: string, clientId: string) => openFake(hub, { dialect: 'local', user, clientId });
  const [first, second] = [open('ann', 'a'), open('ann', 'a')];
  open('ann', 'b');
  const closed: string[] = [];
  for (const [name, { connection }] of Object.entries({ first, second })) {
    const { ws } = connection as unknown as { ws: { terminate: () => void } };
    ws.terminate = () => closed.push(name);
  }
  expect([hub.closeOldest('ann', 'c'), hub.closeOldest('bob', 'a'), closed]).toEqual([
    false,
    false,
    [],
  ]);
  expect(hub.closeOldest('ann', null)).toBe(false);
  expect(hub.closeOldest('ann', 'a')).toBe(true);
  first.close();
  expect(hub.closeOldest('ann', 'a')).toBe(true);
  expect(closed).toEqual(['first', 'second']);
});
