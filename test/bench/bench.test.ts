import { expect, test } from 'vitest';
import { quantile, rowsOf } from './measure.ts';
import { benchOptions } from './options.ts';

test('a ratio is the median of the ratios of each round', () => {
  const rows = rowsOf({
    bench: 'x',
    reference: 'z',
    ours: [{ ms: 1 }, { ms: 100 }, { ms: 3 }],
    theirs: [{ ms: 2 }, { ms: 50 }, { ms: 6 }],
  });
  const reference = { name: 'z', value: 6 };
  expect(rows).toEqual([
    { bench: 'x', figure: 'ms', holdover: 3, reference, ratio: 0.5, spread: 3 },
  ]);
});

test('a quantile is the smallest value that its share does not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([0, 0.5, 0.99, 1].map((share) => quantile(hundred, share))).toEqual([1, 50, 99, 100]);
});

test('the command line names benches, rounds and a checkout', () => {
  const argv = ['start', '--against', '../ref', '--rounds', '3'];
  expect(benchOptions(argv)).toEqual({ names: ['start'], rounds: 3, against: '../ref' });
  expect(() => benchOptions(['--rounds', '0'])).toThrow('--rounds takes a number from 1, not 0');
});
