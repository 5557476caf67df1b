// A text is paid for before it exists; what is slow in V8 is done in pieces.
import { describe, expect, test } from 'vitest';
import { createMemoryMeter } from '../../src/engine/execution/memory-meter.ts';
import { type Inputs, type NodeContext, OutOfMemory, type Value } from '../../src/nodes/node.ts';
import type { Json } from '../../src/protocol/json.ts';
import { TEXT_NODES } from '../../src/nodes/text/text-nodes.ts';
import { fakeContext } from '../support/graphs/pixels.ts';

const MIB = 2 ** 20;

async function run(name: string, inputs: Inputs, context: NodeContext = fakeContext({})) {
  const def = TEXT_NODES.find((one) => one.name === name)!;
  return (await def.run(inputs, context)).outputs[0];
}

/** Numbers in a list in a list, and so on. */
function deepList(count: number, depth: number): Value {
  const wrapped = (inner: Json, levels: number): Json =>
    levels === 0 ? inner : wrapped([inner], levels - 1);
  return wrapped(Array<number>(count).fill(1), depth) as unknown as Value;
}

/** A job that has so much memory. */
function jobOf(limitBytes: number) {
  const meter = createMemoryMeter(limitBytes);
  return {
    meter,
    context: { ...fakeContext({}), reserve: (bytes: number) => meter.reserve(bytes) },
  };
}

describe('a text the job has no memory for is refused before it is built', () => {
  const long = 'x'.repeat(MIB);
  // Each would be longer than any text can be, or take minutes.
  test.each<[string, Inputs]>([
    ['StringConcatenate', { string_a: long, string_b: long, delimiter: long }],
    ['StringReplace', { string: long, find: '', replace: long }],
    ['StringReplace', { string: long, find: 'x', replace: long }],
    ['StringReplace', { string: long, find: 'x', replace: 'yyyy' }],
    ['CaseConverter', { string: 'ﬃ'.repeat(MIB), mode: 'UPPERCASE' }],
    // The indentation alone is that long.
    ['PreviewAny', { source: deepList(1000, 3000) }],
  ])('%s', async (name, inputs) => {
    const { context } = jobOf(5 * MIB);
    await expect(run(name, inputs, context)).rejects.toThrow(OutOfMemory);
    await expect(run(name, inputs, context)).rejects.toThrow(/^Allocation of .* failed/);
  });

  test('also when the job had memory for more than any text can hold', async () => {
    const inputs = { string: long, find: '', replace: long };
    await expect(run('StringReplace', inputs)).rejects.toThrow(OutOfMemory);
  });
});

describe('the memory of a job', () => {
  const text = 'x'.repeat(MIB);

  test('holds the texts of nodes that are done', () => {
    const { meter } = jobOf(7 * MIB);
    for (const end of ['a', 'b', 'c']) {
      meter.reserve(2 * MIB);
      meter.settle([`${text}${end}`.slice(1)]);
    }
    expect(() => meter.reserve(2 * MIB)).toThrow(OutOfMemory);
    expect(() => meter.reserve(MIB / 2)).not.toThrow();
  });
});

describe('a long text', () => {
  test.each(['StringContains', 'StringReplace'])(
    'is not looked for by %s when that may take minutes',
    async (name) => {
      const inputs = { string: `${'a'.repeat(4e6)}b`, case_sensitive: true, replace: '' };
      const long = `${'a'.repeat(4e5)}b${'a'.repeat(4e5)}`;
      const words = { find: long, substring: long };
      await expect(run(name, { ...inputs, ...words })).rejects.toThrow(/too long/);
    },
  );

  const parts = ['ΟΔΥΣΣΕΥΣ ', 'Σ', "'", 'ß', '🐈', 'É', 'ΑΣ.', 'İ', '\u0345', '𐐀𐐨', '- '];
  const long = Array.from({ length: 60_000 }, (_, i) => parts[(i * i + (i >> 3)) % parts.length]);
  const text = `${long.join('')}${'Σ'.repeat(100_000)} ${'Ab'.repeat(100_000)}`;

  test('changes its case', async () => {
    const same = async (mode: string, whole: string) =>
      expect((await run('CaseConverter', { string: text, mode })) === whole).toBe(true);
    await same('lowercase', text.toLowerCase());
    await same('UPPERCASE', text.toUpperCase());
    const capital = (word: string) => {
      const [first = ''] = word;
      const [head = '', ...tail] = first.toUpperCase();
      const rest = word.toLowerCase().slice(first.toLowerCase().length);
      return head + tail.join('').toLowerCase() + rest;
    };
    await same('Title Case', text.replaceAll(/\p{Cased}+/gu, capital));
  });

  test('is cut and counted by characters', async () => {
    const chars = Array.from(text);
    expect(await run('StringLength', { string: text })).toBe(chars.length);
    const cut = await run('StringSubstring', { string: text, start: 70_000, end: -70_000 });
    expect(cut === chars.slice(70_000, -70_000).join('')).toBe(true);
    const spread = await run('StringReplace', { string: text, find: '', replace: '|' });
    expect(spread === `|${chars.join('|')}|`).toBe(true);
  });

  test('is shown as far as there is room for it', async () => {
    const preview = TEXT_NODES.find(({ name }) => name === 'PreviewAny')!;
    const context = { ...fakeContext({}), reserveShown: () => 4 };
    const { outputs, ui } = await preview.run({ source: 'abc🐈def' }, context);
    expect(ui?.['text']).toEqual(['abc… (shortened from 8 characters)']);
    expect(outputs).toEqual(['abc🐈def']);
  });
});
