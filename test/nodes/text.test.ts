import { describe, expect, test } from 'vitest';
import { NodeFailure } from '../../src/nodes/node.ts';
import type { Inputs, Value } from '../../src/nodes/node.ts';
import { PRIMITIVE_NODES } from '../../src/nodes/primitive.ts';
import { TEXT_NODES } from '../../src/nodes/text/text-nodes.ts';
import { parseJson } from '../../src/protocol/json.ts';
import { pythonFloat, pythonJson } from '../../src/protocol/python-json.ts';
import { recordedJson, runGraph } from '../support/graphs/node-graph.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const NODES = [...TEXT_NODES, ...PRIMITIVE_NODES];
const REGEX = { case_insensitive: false, multiline: false, dotall: false };

test.each(['string_concat_replace', 'previewany_values'])(
  '%s shows the recorded texts',
  async (name) => {
    const { ui } = await runGraph(name, NODES);
    expect(ui).toEqual((recordedJson(name, 'outputs.json') as { outputs: unknown }).outputs);
  },
);

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
    { kind: 'mask', batch: 2, height: 3, width: 4, data: new Float32Array(24) },
    'mask 4×3, batch of 2',
  ],
])('PreviewAny shows %j as %j', async (value, text) => {
  expect(await shown(value)).toBe(text);
});

test.each(PRIMITIVE_NODES.map(({ name }) => name))('%s hands on its value', async (name) => {
  expect(await evaluate(name, { value: 'v' })).toBe('v');
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

describe('RegexMatch', () => {
  test.each([
    ['^b', 'a\nb', {}, false],
    ['^b', 'a\nb', { multiline: true }, true],
    ['a$', 'a\n', {}, true],
    ['a\\Z', 'a\n', {}, false],
    ['a.b', 'a\nb', {}, false],
    ['a.b', 'a\nb', { dotall: true }, true],
    ['a.b', 'a\u2028b', {}, true],
    ['^.$', '🐈', {}, true],
    ['É', 'é', { case_insensitive: true }, true],
    ['(?i)CAT', 'cat', {}, true],
    ['^\\w+$', 'é猫_1', {}, true],
    ['\\bé', 'xé', {}, false],
    ['\\-\\"\\#x', '-"#x', {}, true],
    ['[\\-\\w]+\\.', 'é-.', {}, true],
    ['^[^\\W\\d_]+$', 'éß猫', {}, true],
    ['[^\\W\\d_]', '_1 ‿', {}, false],
    ['^[\\W_]+$', '-_ ‿!', {}, true],
    ['^b', 'a\u2028b', { multiline: true }, false],
    ['a$', 'a\r\nb', { multiline: true }, false],
    ['a$', 'a\nb', { multiline: true }, true],
    ['[]a]', ']', {}, true],
    ['{x}]', '{x}]', {}, true],
    ['^a{,2}$', 'aa', {}, true],
    ['(?P<q>[ab])(?P=q)', 'abb', {}, true],
    ['a(?#a remark)b', 'ab', {}, true],
    ['(', 'anything', {}, false],
  ])('%j in %j with %j: %j', async (regex_pattern, string, flags, expected) => {
    expect(await evaluate('RegexMatch', { string, regex_pattern, ...REGEX, ...flags })).toBe(
      expected,
    );
  });

  test.each(['(?>a)b', 'a++', '(?x) a', '(?(1)a|b)', '(?i:a)', 'a{2}+'])(
    'refuses %j, which JavaScript cannot express, by name',
    async (regex_pattern) => {
      const result = evaluate('RegexMatch', { string: 'ab', regex_pattern, ...REGEX });
      await expect(result).rejects.toMatchObject({ exceptionType: 'NotImplementedError' });
    },
  );
});

describe('RegexExtract', () => {
  test.each([
    ['First Match', '\\d+', 1, '12'],
    ['First Match', 'x', 1, ''],
    ['All Matches', '\\d+', 1, '12\n34'],
    ['All Matches', '(\\w)=(\\d+)', 1, 'a\nb'],
    ['First Group', '(\\w)=(\\d+)', 2, '12'],
    ['First Group', '(\\w)=(\\d+)', 3, ''],
    ['First Group', '\\w=', 0, 'a='],
    ['First Group', '(x)|a', 1, null],
    ['All Groups', '(\\w)=(\\d+)', 2, '12\n34'],
    ['All Groups', '\\w=', 0, ''],
    ['All Groups', '(', 1, ''],
  ])('%s of %j, group %j: %j', async (mode, regex_pattern, group_index, expected) => {
    const inputs = { string: 'a=12 b=34', regex_pattern, mode, group_index, ...REGEX };
    expect(await evaluate('RegexExtract', inputs)).toBe(expected);
  });
});

describe('RegexReplace', () => {
  test.each([
    ['(\\w)=(\\d+)', '\\2=\\1', {}, '12=a 34=b'],
    ['(?P<k>\\w)=', '\\g<k>:\\g<0>', {}, 'a:a=12 b:b=34'],
    ['\\d', '$1', { count: 1 }, 'a=$12 b=34'],
    [' ', '\\n', {}, 'a=12\nb=34'],
    ['B', 'c', {}, 'a=12 c=34'],
    ['B', 'c', { case_insensitive: false }, 'a=12 b=34'],
    ['x*', '-', {}, '-a-=-1-2- -b-=-3-4-'],
  ])('%j by %j with %j: %j', async (regex_pattern, replace, more, expected) => {
    const inputs = { string: 'a=12 b=34', regex_pattern, replace, ...more };
    expect(await evaluate('RegexReplace', inputs)).toBe(expected);
  });

  test.each([
    ['(', '', 're.error'],
    ['a', '\\1', 're.error'],
    ['a', '\\q', 're.error'],
    ['a', '\\g<toString>', 'IndexError'],
    ['(?P<k>a)', '\\g<constructor>', 'IndexError'],
  ])('fails as the original does on %j by %j', async (regex_pattern, replace, exceptionType) => {
    const result = evaluate('RegexReplace', { string: 'a', regex_pattern, replace });
    await expect(result).rejects.toMatchObject({ exceptionType });
    await expect(result).rejects.toBeInstanceOf(NodeFailure);
  });

  test.each([
    ['x', '\\1', 're.error', 'invalid group reference 1 at position 1'],
    ['(?i)x|(y)', 'a\\2', 're.error', 'invalid group reference 2 at position 2'],
    ['x', '\\g<n>', 'IndexError', "unknown group name 'n'"],
  ])('%s without a match and with %s fails as well', async (pattern, replace, type, message) => {
    const result = evaluate('RegexReplace', { string: 'a', regex_pattern: pattern, replace });
    await expect(result).rejects.toMatchObject({ exceptionType: type, message });
  });

  test('groups that the pattern has need no match', async () => {
    const inputs = { string: 'a', regex_pattern: '(x)|(?P<n>y)', replace: '\\1\\2\\g<n>' };
    expect(await evaluate('RegexReplace', inputs)).toBe('a');
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
