import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { LONG_TESTS } from './long-tests.ts';

test('every file that starts first exists', () => {
  expect(LONG_TESTS.filter((path) => !existsSync(path))).toEqual([]);
});
