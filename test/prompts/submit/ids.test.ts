// Keys decide whose turn it is among equal numbers: they have to tell who came first.
import { expect, test } from 'vitest';
import { createPromptKeys } from '../../../src/prompts/submit/ids.ts';

test('keys of one moment are sorted as they were made, before those of the next', () => {
  const newKey = createPromptKeys();
  const atMs = [...Array.from({ length: 300 }, () => 1_795_310_464_760), 1_795_310_464_761];
  const keys = atMs.map((ms) => newKey(ms));
  expect(keys.toSorted()).toEqual(keys);
  expect(new Set(keys).size).toBe(keys.length);
  for (const key of keys)
    expect(key).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

test('keys of two processes in one moment differ', () => {
  const [one, other] = [createPromptKeys(), createPromptKeys()];
  expect(one(1_795_310_464_760)).not.toBe(other(1_795_310_464_760));
});
