import { describe, expect, test } from 'vitest';
import { minus, quantile, ratioRow } from '../measure.ts';
import { benchOptions } from '../options.ts';
import { sampleOf } from './prompts.ts';
import { statMs } from './processor-time.ts';

describe('quantile', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);

  test.each([
    [0.5, 50],
    [0.99, 99],
    [1, 100],
    [0, 1],
  ])('%d of 1 to 100 is %d', (share, value) => {
    expect(quantile(hundred, share)).toBe(value);
  });

  test('one value is every quantile of itself; none is not a number', () => {
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });
});

test('rounds are paired: what is added is the difference within each round', () => {
  const through = [{ value: 30 }, { value: 50 }];
  expect(minus(through, [{ value: 10 }, { value: 45 }])).toEqual([{ value: 20 }, { value: 5 }]);
});

test('a ratio is the median of the ratios of each round', () => {
  const row = ratioRow({
    bench: 'x',
    figure: 'y',
    unit: 'ms',
    samples: [{ value: 1 }, { value: 100 }, { value: 3 }],
    against: { name: 'z', samples: [{ value: 2 }, { value: 50 }, { value: 6 }] },
    target: { kind: 'at most', ratio: 0.5 },
  });
  expect(row).toMatchObject({ reached: '0.5×', holds: true, holdover: 3 });
  expect(row.reference).toEqual({ name: 'z', value: 6 });
});

test('processor time counts the process and its ended children, whatever its name is', () => {
  const fields = Array.from({ length: 50 }, (_, i) => i);
  const stat = `42 (a ) b) S ${fields.slice(4).join(' ')}`;
  // Fields 14 to 17 of proc(5).
  expect(statMs(stat)).toBe((14 + 15 + 16 + 17) * 10);
});

test('processor time of the first prompts is that beyond an idle process', () => {
  const endMs = [1, 2, 3, 4];
  const times = { startedAtMs: 0, endMs, acceptedMs: 0, finishedMs: 0, bodyBytes: 0 };
  expect(sampleOf(times, { allMs: 900, idleMs: 400 })).toEqual({
    value: 2,
    more: { p99Ms: 4, cpuMs: 500, allCpuMs: 900 },
  });
});

describe('the command line', () => {
  test.each([
    [[], { names: [], rounds: 5 }],
    [['first', 'start'], { names: ['first', 'start'], rounds: 5 }],
    [['--against', '../ref', '--rounds', '3'], { names: [], rounds: 3, against: '../ref' }],
  ])('%j', (argv, options) => {
    expect(benchOptions(argv)).toEqual(options);
  });

  test.each([
    [['--rounds', '0'], '--rounds takes a number from 1, not 0'],
    [['--rounds', 'many'], '--rounds takes a number from 1, not many'],
    [['--faster'], "Unknown option '--faster'"],
  ])('%j is refused', (argv, reason) => {
    expect(() => benchOptions(argv)).toThrow(reason);
  });
});
