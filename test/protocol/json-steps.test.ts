import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runInSteps } from '../../src/lib/event-loop.ts';
import {
  type Json,
  LosslessNumber,
  isSameJson,
  parseJson,
  stringifyJson,
} from '../../src/protocol/json.ts';
import { stringifySteps } from '../../src/protocol/json-steps.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import { anyText } from '../support/any-text.ts';

const exact = fc.constantFrom('1e400', '18446744073709551615').map((n) => new LosslessNumber(n));
const longText = fc.constant('😀"\\'.repeat(200_000));

test('writes in steps what is written at once', () => {
  const long = fc.array(fc.oneof(fc.integer(), exact, anyText), { maxLength: 30 });
  const value = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.jsonValue() as fc.Arbitrary<Json>,
      exact,
      longText,
      long.map((items) => Array.from({ length: 6000 }, (_, i) => items[i % 31] ?? null)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 4 }),
    ),
  })).value;
  fc.assert(
    fc.property(value, (given) => {
      expect(runSteps(stringifySteps(given))).toBe(stringifyJson(given));
    }),
    { numRuns: 40 },
  );
});

test('no step writes much: 100 000 values in one list, or in one object, or one long text', () => {
  const list: Json = Array.from({ length: 100_000 }, () => new LosslessNumber('1e400'));
  const object: Json = Object.fromEntries(list.map((_, i) => [`k${i}`, i]));
  for (const value of [list, object, { a: 'x'.repeat(5_000_000) }]) {
    const steps = stringifySteps(value);
    let most = 0;
    for (let step = steps.next(); step.done !== true; step = steps.next()) {
      most = Math.max(most, step.value);
    }
    expect(most).toBeGreaterThan(0);
    expect(most).toBeLessThanOrEqual(8_001);
  }
});

test('numbers keep their digits, members named like those of every object are members', () => {
  const text = '{"a":[18446744073709551615,{"__proto__":[1.5]}],"b":{},"c":[]}';
  expect(runSteps(stringifySteps(parseJson(text)))).toBe(text);
});

test('others have their turn while a long text is written', async () => {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const value = Array.from({ length: 20_000 }, () => 'x'.repeat(200));
  expect(await runInSteps(stringifySteps(value))).toBe(JSON.stringify(value));
  isOver = true;
  expect(turns).toBeGreaterThanOrEqual(10);
});

test('values are the same when their texts are, but for the order of members', () => {
  const digits = parseJson('[18446744073709551615]');
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(isSameJson(value as Json, JSON.parse(JSON.stringify(value)))).toBe(true);
      expect(isSameJson([value as Json], { 0: value as Json })).toBe(false);
    }),
  );
  expect(isSameJson({ a: 1, b: [2] }, { b: [2], a: 1 })).toBe(true);
  expect(isSameJson({ a: 1 }, { a: 1, b: null })).toBe(false);
  expect(isSameJson({ toString: 1 }, { b: 1 })).toBe(false);
  expect(isSameJson(digits, parseJson('[18446744073709551615]'))).toBe(true);
  expect(isSameJson(digits, parseJson('[18446744073709551614]'))).toBe(false);
});
