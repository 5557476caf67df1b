import { expect, test } from 'vitest';
import { BodyMemory } from '../../../src/http/json/body-memory.ts';

const MB = 1024 * 1024;

test('bodies wait for those before them, in their order, and are admitted as these end', async () => {
  const memory = new BodyMemory({ limitBytes: 40 * MB, waitMs: 5000 });
  const first = await memory.reserve(8 * MB);
  const order: number[] = [];
  const second = memory.reserve(6 * MB).then((hold) => order.push(2) && hold);
  const third = memory.reserve(MB).then((hold) => order.push(3) && hold);
  await new Promise(setImmediate);
  expect(order).toEqual([]);
  first?.();
  await Promise.all([second, third]);
  expect(order).toEqual([2, 3]);
});

test('one for which there is no room in time learns so, and those behind it go on', async () => {
  const memory = new BodyMemory({ limitBytes: 40 * MB, waitMs: 20 });
  const first = await memory.reserve(8 * MB);
  const tooLarge = memory.reserve(9 * MB);
  expect(await tooLarge).toBeUndefined();
  expect(await memory.reserve(MB)).toBeDefined();
  first?.();
  expect(await memory.reserve(9 * MB)).toBeDefined();
});

test('small bodies have a reserve', async () => {
  const memory = new BodyMemory({ limitBytes: 40 * MB, waitMs: 20 });
  await memory.reserve(10 * MB);
  expect(await memory.reserve(MB)).toBeUndefined();
  expect(await memory.reserve(1000)).toBeDefined();
});

test('prompts that are kept count as well, until they end', async () => {
  let kept = 18 * MB;
  const memory = new BodyMemory({ limitBytes: 40 * MB, queuedBytes: () => kept, waitMs: 2000 });
  const held = memory.reserve(2 * MB);
  kept = 0;
  expect(await held).toBeDefined();
});

test('of bodies that arrive the first can always grow to its end, then the next', async () => {
  const memory = new BodyMemory({ limitBytes: 40 * MB, waitMs: 5000 });
  const bodies = [{ rest: 8 * MB }, { rest: 8 * MB }];
  const [first, second] = bodies;
  for (const body of bodies) expect(await memory.reserve(MB, body)).toBeDefined();
  const order: number[] = [];
  const later = memory.reserve(7 * MB, second).then(() => order.push(2));
  const release = await memory.reserve(7 * MB, first);
  await new Promise(setImmediate);
  expect(order).toEqual([]);
  memory.ended(first!);
  release?.();
  await later;
});

test('a body that is not the first grows to its end where both have room', async () => {
  const memory = new BodyMemory({ limitBytes: 40 * MB, waitMs: 20 });
  const [first, second] = [{ rest: 4 * MB }, { rest: 5 * MB }];
  for (const body of [first, second]) expect(await memory.reserve(MB, body)).toBeDefined();
  expect(await memory.reserve(3 * MB, first)).toBeDefined();
  expect(await memory.reserve(4 * MB, second)).toBeDefined();
});
