import { describe, expect, test } from 'vitest';
import type { Inputs, Value } from '../../src/nodes/node.ts';
import { PRIMITIVE_NODES } from '../../src/nodes/primitive.ts';
import { TEXT_NODES } from '../../src/nodes/text/text-nodes.ts';
import { parseJson } from '../../src/protocol/json.ts';
import { pythonFloat, pythonJson } from '../../src/protocol/python-json.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const NODES = [...TEXT_NODES, ...PRIMITIVE_NODES];

test('the original prints beyond 2^53 in full, and so do we', async () => {
  expect(await shown(18446744073709551615n)).toBe('18446744073709551615');
});

test.each<[Value, string]>([
  [null, 'None'],
  [true, 'True'],
  [-5, '-5'],
  [0.5, '0.5'],
  ['as it is', 'as it is'],
  [
    { kind: 'mask', batch: 2, height: 3, width: 4, channels: 1, data: new Float32Array(24) },
    'mask 4×3, batch of 2',
  ],
])('PreviewAny shows %j as %j', async (value, text) => {
  expect(await shown(value)).toBe(text);
});

test('PreviewAny shows objects and lists with a line for each item', async () => {
  const source = { a: [], b: {}, 猫: [1.5, 'é"', { c: true }] };
  expect(await shown(source as unknown as Value)).toBe(
    `{
    "a": [],
    "b": {},
    "猫": [
        1.5,
        "é\\"",
        {
            "c": true
        }
    ]
}`,
  );
});

describe('text nodes behave as Python does', () => {
  test.each<[string, Inputs, Value]>([
    ['StringLength', { string: 'a猫🐈' }, 3],
    ['StringSubstring', { string: 'a猫🐈d', start: 1, end: 3 }, '猫🐈'],
    ['StringSubstring', { string: 'abcd', start: -3, end: -1 }, 'bc'],
    ['StringSubstring', { string: 'abcd', start: 3, end: 1 }, ''],
    ['StringConcatenate', { string_a: 'a', string_b: 'b', delimiter: ', ' }, 'a, b'],
    ['StringTrim', { string: '\x1f a\u3000', mode: 'Both' }, 'a'],
    ['StringTrim', { string: ' a ', mode: 'Left' }, 'a '],
    ['StringTrim', { string: ' a ', mode: 'Right' }, ' a'],
    ['StringTrim', { string: '\ufeffa', mode: 'Both' }, '\ufeffa'],
    ['CaseConverter', { string: 'aßÉ', mode: 'UPPERCASE' }, 'ASSÉ'],
    ['CaseConverter', { string: 'AÉ', mode: 'lowercase' }, 'aé'],
    ['CaseConverter', { string: 'hello WORLD', mode: 'Capitalize' }, 'Hello world'],
    ['CaseConverter', { string: 'ßa ΑΣ ﬁN', mode: 'Title Case' }, 'Ssa Ας Fin'],
    ['CaseConverter', { string: "they're BIG", mode: 'Title Case' }, "They'Re Big"],
    ['StringReplace', { string: 'a.a', find: '.', replace: '$&' }, 'a$&a'],
    ['StringReplace', { string: 'a🐈', find: '', replace: '-' }, '-a-🐈-'],
    ['StringContains', { string: 'Cat', substring: 'cA', case_sensitive: true }, false],
    ['StringContains', { string: '', substring: '', case_sensitive: true }, true],
    ['StringContains', { string: 'Cat', substring: '', case_sensitive: true }, true],
    ['CaseConverter', { string: 'Cat', mode: 'toString' }, 'Cat'],
    ['StringTrim', { string: ' Cat', mode: 'constructor' }, ' Cat'],
    [
      'StringCompare',
      { string_a: 'a', string_b: 'b', mode: 'valueOf', case_sensitive: true },
      false,
    ],
    ['StringContains', { string: 'Cat', substring: 'cA', case_sensitive: false }, true],
    [
      'StringCompare',
      { string_a: 'Cat', string_b: 'ca', mode: 'Starts With', case_sensitive: false },
      true,
    ],
    [
      'StringCompare',
      { string_a: 'Cat', string_b: 'At', mode: 'Ends With', case_sensitive: true },
      false,
    ],
    ['StringCompare', { string_a: 'a', string_b: 'a', mode: 'Equal', case_sensitive: true }, true],
  ])('%s %j gives %j', async (name, inputs, expected) => {
    expect(await evaluate(name, inputs)).toBe(expected);
  });
});

describe('Python spelling', () => {
  test.each([
    ['{"a": [1, 2.5, true, null], "b": {}}'],
    ['["\\u00e9\\ud83d\\udc08 \\"\\\\\\n\\u0001"]'],
    ['["\u007f/<>&"]'],
    ['[18446744073709551615, 0.1234567890123456789, -0.0001]'],
    ['[1e-05, 1e+22]'],
  ])('%s is written as it came', (text) => {
    expect(pythonJson(parseJson(text))).toBe(text);
  });

  test.each([
    [3, '3.0'],
    [1e16, '1e+16'],
    [123456789012345.5, '123456789012345.5'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [1e100, '1e+100'],
    [-0, '-0.0'],
    [Number.NaN, 'nan'],
    [Number.NEGATIVE_INFINITY, '-inf'],
  ])('a FLOAT of %j is shown as %s', (value, text) => {
    expect(pythonFloat(value)).toBe(text);
  });
});

async function evaluate(name: string, inputs: Inputs): Promise<Value> {
  const def = NODES.find((one) => one.name === name)!;
  const { outputs } = await def.run(inputs, fakeContext({}));
  return outputs[0] as Value;
}

async function shown(source: Value): Promise<unknown> {
  const def = NODES.find(({ name }) => name === 'PreviewAny')!;
  const { ui } = await def.run({ source }, fakeContext({}));
  return ui?.['text']?.[0];
}
