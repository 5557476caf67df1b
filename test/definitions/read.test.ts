import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readDefinitions, toDefinitions } from '../../src/definitions/parse-definitions.ts';
import { fileMentions, outputNodes } from '../../src/translate/file-mentions.ts';
import type { Definitions } from '../../src/definitions/definitions.ts';
import { stringifyJson } from '../../src/protocol/json.ts';
import { toPythonText } from '../../src/protocol/python-json-text.ts';
import type { Graph } from '../../src/protocol/v2.ts';

const CLASS = '{"input":{"required":{}},"output":[],"output_node":true}';

async function read(text: string | Buffer): Promise<Definitions> {
  const reading = await readDefinitions(Buffer.from(text));
  if (!reading.ok) throw new Error(reading.reason);
  return reading.definitions;
}

function textOf({ members }: Definitions): string {
  return `{${[...members.values()].map(String).join(',')}}`;
}

describe('definitions from outside', () => {
  test('keep their text to the digit and their order', async () => {
    const seed = '{"input":{"required":{"seed":["INT",{"max":18446744073709551615,"step":1.0}]}}}';
    const definitions = await read(
      `\ufeff \n{ "B": ${seed} ,\t"10":${CLASS}, "A" : ${CLASS} }\r\n`,
    );
    expect([...definitions.members.keys()]).toEqual(['B', '10', 'A']);
    expect(definitions.members.get('B')?.toString().trim()).toBe(`"B": ${seed}`);
    const { input } = definitions.info['B'] ?? { input: {} };
    expect(stringifyJson(input)).toContain('"max":18446744073709551615,"step":1');
  });

  test.each([
    ['null', 'null'],
    ['a number', '1e999'],
    ['NaN where JSON has none', '{"input":{"required":{"x":["FLOAT",{"max":NaN}]}}}'],
    ['nested too deep', `{"input":${'['.repeat(300)}${']'.repeat(300)}}`],
    ['brackets that do not match', '{"input":[}}'],
  ])('leave out a class that is %s, and keep the others', async (_, odd) => {
    const definitions = await read(`{"Odd":${odd},"Good":${CLASS}}`);
    expect([...definitions.members.keys()]).toEqual(['Good']);
    expect(JSON.parse(textOf(definitions))).toEqual({ Good: JSON.parse(CLASS) });
  });

  const graphOf = (class_type: string): Graph =>
    ({ 1: { class_type, inputs: { image: 'a.png' } } }) as Graph;

  test.each([
    ['no input', '{}'],
    ['a null input', '{"input":null,"output":null}'],
    ['null groups', '{"input":{"required":null,"optional":3,"hidden":"x"}}'],
    ['specs of any kind', '{"input":{"required":{"image":null,"b":7,"c":[],"d":[null,null]}}}'],
    ['output_node as a text', '{"input":{},"output_node":"yes"}'],
  ])('with %s can be used by prompts', async (_, odd) => {
    const { info } = await read(`{"Odd":${odd},"Good":${CLASS}}`);
    expect(fileMentions(graphOf('Odd'), info)).toEqual([]);
    expect(outputNodes(graphOf('Odd'), info)).toEqual([]);
    expect(info['Odd']?.output_node).toBe(false);
    expect(outputNodes(graphOf('Good'), info)).toEqual(['1']);
  });

  test.each(['__proto__', 'constructor', 'a "quoted" \\ one', '猫\u2028'])(
    'may have a class called %s',
    async (name) => {
      const definitions = await read(`{${JSON.stringify(name)}:${CLASS}}`);
      expect([...definitions.members.keys()]).toEqual([name]);
      expect(outputNodes(graphOf(name), definitions.info)).toEqual(['1']);
      expect(Object.getPrototypeOf(definitions.info)).toBeNull();
    },
  );

  test('that have no name to display are displayed by the name of their class', async () => {
    const definitions = await read('{"A":{"output":[18446744073709551615],"display_name":null}}');
    expect(textOf(definitions)).toBe(
      '{"A": {"output": [18446744073709551615], "display_name": "A"}}',
    );
    expect(definitions.info['A']?.display_name).toBe('A');
  });

  test('that name a class twice have it once, as JSON means it', async () => {
    const definitions = await read(`{"A":{"output":[1]},"A":{"output":[2]}}`);
    expect(textOf(definitions)).toBe('{"A":{"output":[2]}}');
  });

  test.each([
    ['nothing', ''],
    ['a page', '<html></html>'],
    ['a list', `[${CLASS}]`],
    ['no class', '{}'],
    ['an error', '{"error":{"code":"not_found","message":"x"}}'],
    ['cut in a class', `{"A":${CLASS},"B":{"input":{`],
    ['cut after a class', `{"A":${CLASS}`],
    ['followed by more', `{"A":${CLASS}} {}`],
    ['without a comma', `{"A":${CLASS} "B":${CLASS}}`],
    ['not UTF-8', Buffer.from(`{"A":${CLASS.replace('[]', '["\xff"]')}}`, 'latin1')],
  ])('are refused as a whole when they are %s', async (_, text) => {
    expect((await readDefinitions(Buffer.from(text))).ok).toBe(false);
  });

  test('have another version when anything in them is another', async () => {
    const versions = await Promise.all(
      [`{"A":${CLASS}}`, `{"B":${CLASS}}`, `{"A":${CLASS},"B":${CLASS}}`].map(
        async (text) => (await read(text)).version,
      ),
    );
    expect(new Set(versions).size).toBe(3);
    expect((await read(`{"A":${CLASS}}`)).version).toBe(versions[0]);
  });

  test('are the same whether they come as objects or as text', async () => {
    const info = { A: JSON.parse(CLASS), 'B "b"': JSON.parse(CLASS) };
    const made = toDefinitions(info);
    const members = Object.entries(info).map(([name, one]) =>
      toPythonText(`${JSON.stringify(name)}:${JSON.stringify(one)}`),
    );
    expect(textOf(made)).toBe(`{${members.join(',')}}`);
    expect((await read(textOf(made))).version).toBe(made.version);
  });
});

test('the classes of any JSON object are found where JSON finds them', async () => {
  const anyClass = fc.record({ input: fc.dictionary(fc.string(), fc.jsonValue()) });
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string(), anyClass), fc.nat(3), async (classes, indent) => {
      fc.pre(Object.keys(classes).length > 0);
      const text = JSON.stringify(classes, null, indent);
      expect(JSON.parse(textOf(await read(text)))).toEqual(JSON.parse(text));
    }),
  );
});

test('a large text lets others have their turns', async () => {
  const many = Array.from({ length: 20_000 }, (_, i) => `"Node${i}":${CLASS}`);
  const bytes = Buffer.from(`{${many.join(',')}}`);
  let turns = 0;
  const timer = setInterval(() => void turns++, 1);
  const reading = await readDefinitions(bytes);
  clearInterval(timer);
  expect(reading.ok).toBe(true);
  expect(turns).toBeGreaterThan(0);
});
