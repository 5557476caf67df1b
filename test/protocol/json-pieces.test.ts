import fc from 'fast-check';
import { expect, test } from 'vitest';
import { joinInSteps } from '../../src/lib/event-loop.ts';
import { type Json, isSameJson, parseJson, stringifyJson } from '../../src/protocol/json.ts';
import { jsonPieces } from '../../src/protocol/json-pieces.ts';

test('the pieces are the text, whatever the value and however fine', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(4), (value, levels) => {
      expect([...jsonPieces(value as Json, levels)].join('')).toBe(stringifyJson(value as Json));
    }),
  );
});

test('numbers keep their digits, members named like those of every object are members', () => {
  const text = '{"a":[18446744073709551615,{"__proto__":[1.5]}],"b":{},"c":[]}';
  expect([...jsonPieces(parseJson(text), 3)].join('')).toBe(text);
});

test('no piece is larger than one member', () => {
  const value = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`n${i}`, ['x']]));
  expect(Math.max(...[...jsonPieces(value, 1)].map(({ length }) => length))).toBeLessThan(10);
});

test('others have their turn while a long text is put together', async () => {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const pieces = Array.from({ length: 10_000 }, () => 'x'.repeat(200));
  expect(await joinInSteps(pieces)).toBe('x'.repeat(2_000_000));
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
