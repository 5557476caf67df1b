import { describe, expect, test } from 'vitest';
import { countCalls, longestChain, timeline, withoutIds } from './upstream-calls.ts';

const call = (startMs: number, endMs: number, succeededMs?: number) => ({
  method: 'GET',
  path: '/api/v2/jobs/5f1c1d5e-6c1f-4a54-9d40-8b0d4f7b2f11',
  status: 200,
  startMs,
  endMs,
  ...(succeededMs !== undefined && { succeededMs }),
});

describe('the longest chain', () => {
  test('calls beside each other are one link', () => {
    expect(longestChain([call(0, 10), call(1, 9), call(2, 12)])).toBe(1);
  });

  test('a call that begins when another has ended is one more', () => {
    expect(longestChain([call(20, 30), call(0, 10), call(5, 15), call(16, 40)])).toBe(2);
    expect(longestChain([call(20, 25), call(0, 10), call(10, 20)])).toBe(3);
  });

  test('none has none', () => {
    expect(longestChain([])).toBe(0);
  });
});

describe('calls after the terminal event', () => {
  const stream = call(10, 20, 20);

  test('one that ends before the frame counts', () => {
    const counts = countCalls([call(0, 8), stream, call(21, 25, 24)], 30);
    expect(counts).toEqual({ calls: 3, chain: 3, afterTerminal: 1 });
  });

  test('one that is still on its way when the frame comes does not', () => {
    expect(countCalls([stream, call(21, 35)], 30)).toMatchObject({ afterTerminal: 0 });
  });

  test('none counts where no call says that the job has ended', () => {
    expect(countCalls([call(0, 5), call(6, 9)], 30)).toMatchObject({ afterTerminal: 0 });
  });
});

test('a timeline is in the order of the beginnings, from the prompt on', () => {
  expect(timeline([call(112.04, 113), call(101, 104)], 100)).toEqual([
    '+1.0 to +4.0 ms GET /api/v2/jobs/{id} 200',
    '+12.0 to +13.0 ms GET /api/v2/jobs/{id} 200',
  ]);
});

test.each([
  ['/api/v2/jobs', '/api/v2/jobs'],
  ['/api/v2/jobs/0f1c1d5e6c1f4a54/events', '/api/v2/jobs/{id}/events'],
  ['/api/v2/jobs?limit=20', '/api/v2/jobs?…'],
])('%s is of the kind %s', (path, kind) => {
  expect(withoutIds(path)).toBe(kind);
});
