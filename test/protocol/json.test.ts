import fc from 'fast-check';
import { LosslessNumber, parse, stringify } from 'lossless-json';
import { describe, expect, test } from 'vitest';
import { parseJson, stringifyJson } from '../../src/protocol/json.ts';

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** JSON texts with numbers of any spelling between strings that look like them. */
const texts = (() => {
  const digits = fc.stringMatching(/^[0-9]{1,25}$/);
  const number = fc.oneof(
    fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?$/),
    fc.constantFrom('18446744073709551615', '0.1', '5.0', '-0', '1e400', '9007199254740993'),
    fc.constantFrom('4503599627370496', '-4503599627370497', '4503599627370498'),
  );
  const string = fc.oneof(
    fc.string(),
    digits,
    fc.constantFrom('\\', '\\"', '"1e5', '[[{', 'ü\u2028'),
  );
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      number,
      string.map((text) => JSON.stringify(text)),
      fc.constantFrom('null', 'true', ' false '),
      fc.array(tie('value'), { maxLength: 4 }).map((items) => `[${items.join(', ')}]`),
      fc
        .array(fc.tuple(string, tie('value')), { maxLength: 4 })
        .map((pairs) => `{${pairs.map(([key, v]) => `${JSON.stringify(key)}:${v}`).join(',')}}`),
    ),
  }));
  return value;
})();

describe('parseJson', () => {
  test('reads what a double holds as a double, every other number to the digit', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const exact = parse(text, null, { onDuplicateKey: ({ newValue }) => newValue });
        const ours = parseJson(text);
        expect(plain(JSON.parse(stringifyJson(ours)))).toEqual(plain(JSON.parse(text)));
        expect(digitsOf(ours)).toEqual(digitsOf(exact));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    '{"a":01234567890123456789}',
    '12345678901234567890.',
    '1234567890123456789012e',
    '[12345678901234567890 1]',
    '"12345678901234567890',
    '{"a":12345678901234567890"b":1}',
    '1-12345678901234567890',
    '0.-12345678901234567890',
    '-',
    '',
  ])('refuses %j', (text) => {
    expect(() => parseJson(text)).toThrow(SyntaxError);
  });

  test('nests to 200 levels and no further', () => {
    expect(() => parseJson(`${'['.repeat(200)}${']'.repeat(200)}`)).not.toThrow();
    expect(() => parseJson(`${'['.repeat(201)}${']'.repeat(201)}`)).toThrow(
      'JSON depth 200 exceeded',
    );
    expect(parseJson(JSON.stringify('['.repeat(300)))).toBe('['.repeat(300));
  });
});

describe('stringifyJson', () => {
  test('writes every value as a writer that is not native does', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const value = parseJson(text);
        expect(parse(stringifyJson(value))).toEqual(parse(stringify(value) ?? ''));
      }),
      { numRuns: 500 },
    );
  });

  test.each([
    '[18446744073709551615,{"value":"1","isLosslessNumber":true}]',
    '{"value":"12345678901234567890","isLosslessNumber":true}',
    '["{\\"value\\":\\"1\\",\\"isLosslessNumber\\":true}",18446744073709551615]',
  ])('does not take what a client wrote for a number: %s', (text) => {
    expect(stringifyJson(parseJson(text))).toBe(text);
  });
});

/** Every number in a value, in order, as the shortest text of the same value. */
function digitsOf(value: unknown): string[] {
  if (typeof value === 'number') return [String(value)];
  if (value instanceof LosslessNumber) {
    const asDouble = Number(value.value);
    return [String(parseJson(value.value) === asDouble ? asDouble : value.value)];
  }
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(digitsOf);
}
