import { expect, test } from 'vitest';
import { EndingPrompts } from '../../../src/prompts/follow/ending-prompts.ts';

async function isOver(waiting: Promise<void>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([waiting, new Promise((r) => setImmediate(r, pending))])) !== pending;
}

test('nothing is waited for when nothing ends, or when it is over', async () => {
  const endings = new EndingPrompts();
  expect(await isOver(endings.whenFinished('anna'))).toBe(true);
  endings.begin('anna', 'a');
  endings.finish('a');
  expect(await isOver(endings.whenFinished('anna'))).toBe(true);
});

test('all endings of the user are waited for, and of no other user', async () => {
  const endings = new EndingPrompts();
  endings.begin('anna', 'a');
  endings.begin('anna', 'b');
  endings.begin('anna', 'b');
  const waiting = endings.whenFinished('anna');
  expect(await isOver(endings.whenFinished('ben'))).toBe(true);
  endings.finish('a');
  expect(await isOver(waiting)).toBe(false);
  endings.finish('b');
  expect(await isOver(waiting)).toBe(true);
});

test('an ending that never comes holds nothing up for good', async () => {
  const endings = new EndingPrompts();
  endings.begin('anna', 'a');
  const waiting = endings.whenFinished('anna');
  expect(await isOver(waiting)).toBe(false);
  await waiting;
});
