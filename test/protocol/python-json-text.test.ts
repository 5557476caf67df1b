import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/protocol/json.ts';
import { PythonTextWriter, toPythonText } from '../../src/protocol/python-json-text.ts';
import { pythonStr } from '../../src/protocol/python-text.ts';

const TRICKY = {
  'a,b:"c"': [1, 2.5, -0.5, 1e21, true, null],
  'ends in \\': 'x\\',
  '\\"': '\\\\",:\\',
  empty: [{}, [], ''],
  'ü 猫 😀': 'é, ü: "猫"\u2028\u007f',
  lines: 'one\ntwo\t"three"',
};
const COMPACT = JSON.stringify(TRICKY);

describe('JSON text as Python writes it', () => {
  test.each([
    ['{"queue_remaining":0}', '{"queue_remaining": 0}'],
    ['[1,[2,3],{"a":null,"b":[]}]', '[1, [2, 3], {"a": null, "b": []}]'],
    ['"a,b:c"', '"a,b:c"'],
    ['{"a\\\\":"b\\",\\\\"}', '{"a\\\\": "b\\",\\\\"}'],
    ['{"é":"猫😀"}', '{"\\u00e9": "\\u732b\\ud83d\\ude00"}'],
    ['18446744073709551615', '18446744073709551615'],
  ])('%s', (compact, written) => {
    expect(toPythonText(compact)).toBe(written);
  });

  test('means the same, in ASCII', () => {
    const written = toPythonText(COMPACT);
    expect(JSON.parse(written)).toEqual(TRICKY);
    expect(written).toMatch(/^[\0-\x7f]*$/);
  });

  test('is the same in two pieces, wherever the first one ends', () => {
    for (let end = 0; end <= COMPACT.length; end++) {
      const writer = new PythonTextWriter();
      const pieces = [COMPACT.slice(0, end), COMPACT.slice(end)];
      expect(pieces.map((piece) => writer.write(piece)).join('')).toBe(toPythonText(COMPACT));
    }
  });

  test('is the same in pieces of one character', () => {
    const writer = new PythonTextWriter();
    const written = Array.from({ length: COMPACT.length }, (_, i) => writer.write(COMPACT[i]!));
    expect(written.join('')).toBe(toPythonText(COMPACT));
  });
});

test.each([
  ['1E16', '1e+16'],
  ['-1e400', '-inf'],
  ['[100000000000000000000.0, 18446744073709551616]', '[1e+20, 18446744073709551616]'],
])('%s is a text as Python makes one', (json, text) => {
  expect(pythonStr(parseJson(json))).toBe(text);
});
