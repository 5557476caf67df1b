import { expect, test } from 'vitest';
import { createEndings } from '../../src/v1/endings.ts';

async function isOver(waiting: Promise<void>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([waiting, new Promise((r) => setImmediate(r, pending))])) !== pending;
}

test('nothing is waited for when nothing ends, or when it is over', async () => {
  const endings = createEndings();
  expect(await isOver(endings.over('anna'))).toBe(true);
  endings.begin('anna', 'a');
  endings.done('anna', 'a');
  expect(await isOver(endings.over('anna'))).toBe(true);
});

test('all endings of the user are waited for, and nobody else’s', async () => {
  const endings = createEndings();
  endings.begin('anna', 'a');
  endings.begin('anna', 'b');
  endings.begin('anna', 'b');
  const waiting = endings.over('anna');
  expect(await isOver(endings.over('ben'))).toBe(true);
  endings.done('anna', 'a');
  expect(await isOver(waiting)).toBe(false);
  endings.done('anna', 'b');
  expect(await isOver(waiting)).toBe(true);
});

test('an ending that never comes holds nothing up for good', async () => {
  const endings = createEndings();
  endings.begin('anna', 'a');
  const waiting = endings.over('anna');
  expect(await isOver(waiting)).toBe(false);
  await waiting;
});
