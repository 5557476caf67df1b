// Python's arithmetic, beside the recorded cases of `fixtures/pixels`.
import { expect, test } from 'vitest';
import { type Part, evaluate } from '../../src/nodes/math/evaluate.ts';
import { NodeFailure } from '../../src/nodes/node.ts';

const NAMES = new Map<string, Part>([
  ['a', 7n],
  ['b', 2.5],
  ['values', [7n, 2.5]],
]);

test.each([
  ['-7 // 2', -4n],
  ['-7 % 3', 2n],
  ['7.5 % -2', -0.5],
  ['-2 ** 2', -4n],
  ['2 ** -1', 0.5],
  ['1 < a < 5 < 9', false],
  ['(a < 8) < 2', true],
  // Each operand is computed once.
  [`${'0 < ('.repeat(40)}2${') < 3'.repeat(40)}`, true],
  ['a == 7.0', true],
  ['not a or b', 2.5],
  ['0 and not 1 or 3', 3n],
  ['not a == 7', false],
  ['not (a and b) or not 0', true],
  ['a or 1 / 0', 7n],
  ['1 | a << 2 ^ 2 & ~a', 29n],
  ['-a >> 1', -4n],
  ['round(2.5)', 2n],
  ['round(0.125, 2)', 0.12],
  ['round(1250, -2)', 1200n],
  ['round(a, -300_000_000) + round(b, -300_000_000)', 0],
  ['sum(values) + sum(a, b)', 19],
  ['min(values) * values[-1]', 6.25],
  ['2 ** 100', 2n ** 100n],
  ['a if b > 3 else 1 / 2', 0.5],
])('%s is %s', (expression, expected) => {
  expect(evaluate(expression, NAMES)).toBe(expected);
});

test('an int of more digits than can be computed is rounded as well', () => {
  const zeros = '0'.repeat(20_009);
  expect(evaluate(`round(16${zeros}, -20_010) == 20${zeros}`, NAMES)).toBe(true);
});

test.each([
  ['a b', 'SyntaxError'],
  ['a; b', 'SyntaxError'],
  ['x + 1', 'simpleeval.NameNotDefined'],
  ['open(a)', 'simpleeval.FunctionNotDefined'],
  ['a.real', 'SyntaxError'],
  ['lambda: 1', 'simpleeval.FeatureNotAvailable'],
  ['constructor', 'simpleeval.NameNotDefined'],
  ['constructor(a)', 'simpleeval.FunctionNotDefined'],
  ['1 / 0', 'ZeroDivisionError'],
  ['sqrt(-a)', 'ValueError'],
  ['9 ** 9 ** 9', 'ValueError'],
  ['a << -1', 'ValueError'],
  ['1 << 10001', 'ValueError'],
  ['~b', 'TypeError'],
  ['pow(2, 5000)', 'ValueError'],
  [`${'-'.repeat(300)}1`, 'RecursionError'],
])('%.20s fails with %s', (expression, exceptionType) => {
  const failure = expect.objectContaining({ exceptionType });
  expect(() => evaluate(expression, NAMES)).toThrow(failure);
  expect(() => evaluate(expression, NAMES)).toThrow(NodeFailure);
});
