import { expect, test } from 'vitest';
import { DEFAULT_REMOTE_LIMITS } from '../../../src/remote/limits.ts';
import { retryAfterMs, toError } from '../../../src/remote/calls/errors.ts';
import { readRetryAfter } from '../../../src/http/retry-after.ts';

const DATE = 'Sat, 21 Nov 2026 12:00:00 GMT';
const NOW = Date.parse(DATE) - 60_000;

test.each([
  [{ 'retry-after': '7' }, 7],
  [{ 'retry-after': ' 7 ' }, 7],
  [{ 'retry-after': '0', date: DATE }, 0],
  [{ 'retry-after': '9'.repeat(400) }, 86_400],
  [{ 'retry-after': '999999' }, 86_400],
  [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT', date: DATE }, 30],
  [{ 'retry-after': 'Saturday, 21-Nov-26 12:01:00 GMT', date: DATE }, 60],
  [{ 'retry-after': 'Sat, 21 Nov 2026 11:00:00 GMT', date: DATE }, 0],
  [{ 'retry-after': 'Sat, 21 Nov 2099 11:00:00 GMT', date: DATE }, 86_400],
  [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT', date: DATE }, 0],
  [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT' }, 90],
  [{ 'retry-after': 'Sat, 21 Nov 2026 12:00:30 GMT', date: 'nonsense' }, 90],
  [{ 'retry-after': 'Sat, 99 Nov 2026 12:00:30 GMT', date: DATE }, undefined],
  [{ 'retry-after': 'soon', date: DATE }, undefined],
  [{ 'retry-after': '-1', date: DATE }, undefined],
  [{ 'retry-after': `-${'9'.repeat(400)}`, date: DATE }, undefined],
  [{ 'retry-after': '1e400', date: DATE }, undefined],
  [{ 'retry-after': '1.5', date: DATE }, undefined],
  [{ 'retry-after': '', date: DATE }, undefined],
  [{ date: DATE }, undefined],
])('%j asks to wait %s seconds', (headers, seconds) => {
  expect(readRetryAfter(headers, NOW)).toBe(seconds);
});

test.each(['7', '9'.repeat(400), '-5', 'Sat, 21 Nov 2099 11:00:00 GMT', 'soon', '-', '1e999'])(
  'a pause for "%s" is bounded, and so is what a client is told of it',
  (said) => {
    const headers = { 'retry-after': said };
    const reply = { status: 429, headers, json: undefined, isPage: false };
    const { retryAfterSeconds } = toError(reply);
    const waitMs = retryAfterMs(retryAfterSeconds, DEFAULT_REMOTE_LIMITS);
    const { minRetryAfterMs, maxRetryAfterMs } = DEFAULT_REMOTE_LIMITS;
    expect(waitMs).toBeGreaterThanOrEqual(minRetryAfterMs);
    expect(waitMs).toBeLessThanOrEqual(maxRetryAfterMs);
    const told = retryAfterSeconds ?? 0;
    expect([Number.isInteger(told), told >= 0, told <= 86_400]).toEqual([true, true, true]);
  },
);
