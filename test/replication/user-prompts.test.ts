import { expect, test } from 'vitest';
import type { LogHandlers } from '../../src/prompts/prompt-event-log.ts';
import { createUserPrompts } from '../../src/replication/user-prompts.ts';

/** The prompts of a user, who has one that this process does not show. */
function open(stream?: { isUnknown(): boolean }) {
  const shown = new Set<string>();
  const handlers = {
    trackUser: async () => {},
    liveKeys: async () => ['k'],
    forgetUser: () => shown.clear(),
  } as unknown as LogHandlers;
  const partition = {
    subscription: { follow: async () => {}, unfollow() {} },
    waitedFor: { recent: async () => [[], []], withEntries: async () => ['k'] },
  };
  const prompts = createUserPrompts({
    redis: {},
    partitions: { ofUser: () => partition },
    streams: { get: () => stream, ofUser: () => [], deleteOfUser() {} },
    handlers: () => handlers,
    discover: async (key: string) => void shown.add(key),
  } as never);
  return { prompts, shown };
}

test('what was missed is shown', async () => {
  const { prompts, shown } = open();
  await prompts.open('ann');
  await prompts.resync('ann');
  expect(shown).toEqual(new Set(['k']));
});

test.each([true, false])(
  'a prompt whose log is open is shown when nothing subscribes to it: %s',
  async (isUnknown) => {
    const { prompts, shown } = open({ isUnknown: () => isUnknown });
    await prompts.open('ann');
    await prompts.resync('ann');
    expect(shown.has('k')).toBe(isUnknown);
  },
);

test('what was missed of several users is read one after the other, and then nothing of them is missed', async () => {
  const { prompts, shown } = open();
  for (const user of ['ann', 'ben']) await prompts.open(user);
  const told: string[] = [];
  const recovered = ['ann', 'ben', 'cas'].map(
    (user) => () =>
      prompts.whenRecovered(user).then(() => told.push(`${user}, shown: ${shown.size}`)),
  );
  const read = prompts.recover(['ann', 'ben']);
  await Promise.all([...recovered.map((wait) => wait()), read]);
  expect(told).toEqual(['cas, shown: 0', 'ann, shown: 1', 'ben, shown: 1']);
});

test('a wait for a user ends when what was missed cannot be read', async () => {
  const { prompts } = open({
    isUnknown: () => {
      throw new Error('Redis is away');
    },
  });
  const read = prompts.recover(['ann', 'ben']);
  const waiting = prompts.whenRecovered('ben');
  await expect(read).rejects.toThrow('Redis is away');
  await waiting;
});

test('nothing is shown of a user who is not followed any more', async () => {
  const { prompts, shown } = open();
  await prompts.open('ann');
  const read = prompts.resync('ann');
  prompts.close('ann');
  await read;
  expect(shown).toEqual(new Set());
});
