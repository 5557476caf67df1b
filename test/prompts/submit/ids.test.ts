// Keys decide whose turn it is among equal numbers: they have to tell who came first.
import { expect, test } from 'vitest';
import { compareIds, createPromptKeys, isPathSafeId } from '../../../src/prompts/submit/ids.ts';

test('keys of one moment are compared as they were made', () => {
  const newKey = createPromptKeys();
  const keys = Array.from({ length: 300 }, () => newKey(1_795_310_464_760));
  expect(keys.toReversed().toSorted(compareIds)).toEqual(keys);
  // As earlier versions made them, with the time first.
  const earlier = ['01a1ff12-1e38-4000-9dd1-d624583a8aa4', '01a1ff12-1e38-4001-8dd1-000000000000'];
  expect(earlier.toReversed().toSorted(compareIds)).toEqual(earlier);
  expect(new Set(keys).size).toBe(keys.length);
  for (const key of keys)
    expect(key).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
});

test('keys differ in their first eight digits, by which clients name files', () => {
  const newKey = createPromptKeys();
  const starts = Array.from({ length: 300 }, (_, i) => newKey(1_795_310_464_760 + i).slice(0, 8));
  expect(new Set(starts).size).toBe(starts.length);
});

test('keys of two processes in one moment differ', () => {
  const [one, other] = [createPromptKeys(), createPromptKeys()];
  expect(one(1_795_310_464_760)).not.toBe(other(1_795_310_464_760));
});

test('an id that would shorten a path is not safe in it', () => {
  expect(['.', '..', 'a/b', 'a..b', '...'].filter(isPathSafeId)).toEqual(['a..b', '...']);
});
