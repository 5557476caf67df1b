// Which users' prompts a process receives: those it needs, and others for a while after their last call.
import { expect, test } from 'vitest';
import { FollowedUsers } from '../../src/replication/followed-users.ts';

const IDLE_MS = 130_000;

function open() {
  const events: string[] = [];
  const needed = new Set<string>();
  let nowMs = 0;
  let failure: Error | undefined;
  const users = new FollowedUsers({
    clock: { now: () => nowMs },
    open: async (user) => {
      events.push(`open ${user}`);
      if (failure) throw failure;
    },
    close: (user) => void events.push(`close ${user}`),
    needed: () => needed,
  });
  return {
    users,
    events,
    needed,
    pass: (ms: number) => (nowMs += ms),
    fail: (error: Error | undefined) => (failure = error),
  };
}

test('a user is opened once, and known when that is done', async () => {
  const { users, events } = open();
  const first = users.follow('ann');
  expect(users.has('ann')).toBe(false);
  await Promise.all([first, users.follow('ann')]);
  expect([events, users.has('ann'), users.has('ben')]).toEqual([['open ann'], true, false]);
});

test('a user without calls is closed when all frames of ended prompts are gone', async () => {
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

test('a user that is needed is opened, and stays', async () => {
  const { users, events, needed, pass } = open();
  needed.add('ann');
  await users.update();
  pass(10 * IDLE_MS);
  await users.update();
  expect([events, users.has('ann')]).toEqual([['open ann'], true]);
  needed.delete('ann');
  pass(IDLE_MS - 1);
  await users.update();
  expect(users.has('ann')).toBe(true);
});

test('a failed attempt is told to all that wait, and made again by the next call', async () => {
  const { users, events, fail } = open();
  fail(new Error('away'));
  const calls = [users.follow('ann'), users.follow('ann')];
  for (const call of calls) await expect(call).rejects.toThrow('away');
  expect([events, users.has('ann')]).toEqual([['open ann', 'close ann'], false]);
  fail(undefined);
  await users.follow('ann');
  expect(users.has('ann')).toBe(true);
});

test('a failed attempt takes nothing from a user that is needed', async () => {
  const { users, events, needed, fail } = open();
  needed.add('ann');
  fail(new Error('away'));
  await expect(users.follow('ann')).rejects.toThrow('away');
  expect(events).toEqual(['open ann']);
});
