import { expect, test } from 'vitest';
import { retryAfter } from '../../src/v2/errors.ts';

const DATE = 'Sat, 21 Nov 2026 12:00:00 GMT';

test.each([
  [{ 'retry-after': '7' }, 7],
  [{ 'retry-after': ' 7 ' }, 7],
  [{ 'retry-after': '0', date: DATE }, 0],
  [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT', date: DATE }, 30],
  [{ 'retry-after': 'Saturday, 21-Nov-26 12:01:00 GMT', date: DATE }, 60],
  [{ 'retry-after': 'Sat, 21 Nov 2026 11:00:00 GMT', date: DATE }, 0],
  [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT' }, undefined],
  [{ 'retry-after': 'soon', date: DATE }, undefined],
  [{ 'retry-after': '-1', date: DATE }, undefined],
  [{ 'retry-after': '1.5', date: DATE }, undefined],
  [{ 'retry-after': '', date: DATE }, undefined],
  [{ date: DATE }, undefined],
])('%j asks to wait %s seconds', (headers, seconds) => {
  expect(retryAfter(headers)).toBe(seconds);
});
