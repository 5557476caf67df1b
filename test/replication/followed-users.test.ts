// Which users' prompts a process receives: those it needs, and others for a while after their last call.
import { expect, test } from 'vitest';
import { FollowedUsers } from '../../src/replication/followed-users.ts';

const IDLE_MS = 130_000;

/** The users of a process; each has a prompt that the process does not show, with this log. */
function open(stream?: { isUnknown(): boolean }) {
  const events: string[] = [];
  const shown = new Set<string>();
  const needed = new Set<string>();
  let nowMs = 0;
  let failure: Error | undefined;
  const prompts = {
    async follow(user: string) {
      events.push(`open ${user}`);
      if (failure) throw failure;
    },
    unfollow: (user: string) => void events.push(`close ${user}`),
    clientScripts: { recent: async () => [[], []], withEntries: async () => ['k'] },
  };
  const handlers = {
    trackUser: async () => {},
    liveKeys: async () => ['k'],
    forgetUser: () => shown.clear(),
  };
  const users = new FollowedUsers({
    clock: { now: () => nowMs },
    prompts,
    streams: { get: () => stream, ofUser: () => [], deleteOfUser() {} },
    handlers: () => handlers,
    discover: async (key: string) => void shown.add(key),
    needed: () => needed,
  } as never);
  return {
    users,
    events,
    shown,
    needed,
    pass: (ms: number) => (nowMs += ms),
    fail: (error: Error | undefined) => (failure = error),
  };
}

test('a user without calls is no longer followed when the frames of ended prompts have expired', async () => {
  const { users, events, pass } = open();
  await users.follow('ann');
  pass(IDLE_MS - 1);
  await users.update();
  await users.follow('ann');
  pass(IDLE_MS - 1);
  await users.update();
  expect(users.has('ann')).toBe(true);
  pass(1);
  await users.update();
  expect([events, users.has('ann')]).toEqual([['open ann', 'close ann'], false]);
});

test('a failed attempt rejects all calls that wait for it, and the next call tries again', async () => {
  const { users, events, fail } = open();
  fail(new Error('away'));
  const calls = [users.follow('ann'), users.follow('ann')];
  for (const call of calls) await expect(call).rejects.toThrow('away');
  expect([events, users.has('ann')]).toEqual([['open ann', 'close ann'], false]);
  fail(undefined);
  await users.follow('ann');
  expect(users.has('ann')).toBe(true);
});

test.each([true, false])(
  'a prompt whose log is open is discovered when it has no subscriber: %s',
  async (isUnknown) => {
    const { users, shown } = open({ isUnknown: () => isUnknown });
    await users.follow('ann');
    await users.resync('ann');
    expect(shown.has('k')).toBe(isUnknown);
  },
);

test('the prompts of several users are read again one after the other', async () => {
  const { users, shown } = open();
  for (const user of ['ann', 'ben']) await users.follow(user);
  const told: string[] = [];
  const recovered = ['ann', 'ben', 'cas'].map(
    (user) => () =>
      users.whenRecovered(user).then(() => told.push(`${user}, shown: ${shown.size}`)),
  );
  const read = users.recover(['ann', 'ben']);
  await Promise.all([...recovered.map((wait) => wait()), read]);
  expect(told).toEqual(['cas, shown: 0', 'ann, shown: 1', 'ben, shown: 1']);
});

test('a wait for a user ends when missed entries cannot be read', async () => {
  const { users } = open({
    isUnknown: () => {
      throw new Error('Redis is away');
    },
  });
  const read = users.recover(['ann', 'ben']);
  const waiting = users.whenRecovered('ben');
  await expect(read).rejects.toThrow('Redis is away');
  await waiting;
});

test('nothing is kept of a user who is no longer followed', async () => {
  const { users, shown, pass } = open();
  await users.follow('ann');
  const read = users.resync('ann');
  pass(IDLE_MS);
  await Promise.all([users.update(), read]);
  expect(shown).toEqual(new Set());
});
