import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JsonReader, parseJson, stringifyJson } from '../../src/protocol/json.ts';
import { runSteps } from '../../src/protocol/steps.ts';
import { anyText } from '../support/any-text.ts';

const LIMITS = { maxValues: 500_000, maxDepth: 200, maxNodes: 10_000 };

/** Reads a text that arrives in chunks of this size. */
function read(text: string, chunkChars = 3): string {
  const reader = new JsonReader({ limits: LIMITS, graphMember: 'prompt' });
  for (let at = 0; at < text.length; at += chunkChars) {
    const fault = reader.push(text.slice(at, at + chunkChars));
    if (fault !== undefined) return fault;
  }
  return stringifyJson(runSteps(reader.end()));
}

const number = fc.constantFrom('0', '-1.5', '1e400', '18446744073709551615', '-4503599627370497');
const string = fc
  .oneof(anyText, fc.constantFrom('\\', '"', '__proto__', '1', 'ü€😀'.repeat(5), '\\"'.repeat(9)))
  .map((text) => JSON.stringify(text));
const name = fc
  .constantFrom(
    'a',
    'b',
    '1',
    '12',
    '3',
    '4294967295',
    '\ue000',
    '\ue0001',
    '__proto__',
    '',
    'prompt',
    'ü"\\',
    'x'.repeat(300),
  )
  .map((text) => JSON.stringify(text));
const { value: texts } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    number,
    string,
    fc.constantFrom('null', 'true', ' false '),
    fc.array(tie('value'), { maxLength: 5 }).map((items) => `[${items.join(', ')}]`),
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 5 })
      .map((pairs) => `{${pairs.map(([key, each]) => `${key} : ${each}`).join(',')}}`),
  ),
}));

describe('a text that arrives in parts', () => {
  test('says what it says as a whole, wherever it is cut', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 40 }), (text, chunkChars) => {
        expect(read(text, chunkChars)).toBe(stringifyJson(parseJson(text)));
      }),
      { numRuns: 1000 },
    );
  });

  test('keeps the order of its members, with the last of two equal names', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(name, string), { maxLength: 8 }), (pairs) => {
        const text = `{${pairs.map((pair) => pair.join(':')).join(',')}}`;
        const kept = [...new Map(pairs)].map(
          ([key, value]) => `${key}:${JSON.stringify(JSON.parse(value))}`,
        );
        expect(read(text)).toBe(`{${kept.join(',')}}`);
      }),
      { numRuns: 1000 },
    );
  });

  test('is refused exactly when the native parser refuses it', () => {
    const marks = ['{', '}', '[', ']', ',', ':', '"a"', '1', 'tru', ' ', '\\', '"', '\u0001'];
    const broken = fc
      .array(fc.constantFrom(...marks), { maxLength: 12 })
      .map((all) => all.join(''));
    const spoiled = fc.tuple(texts, fc.nat(), fc.constantFrom(...marks)).map(([text, at, mark]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + mark + text.slice(place);
    });
    fc.assert(
      fc.property(fc.oneof(broken, spoiled), (text) => {
        expect(outcome(() => read(text))).toBe(outcome(() => JSON.parse(text)));
      }),
      { numRuns: 3000 },
    );
  });

  test.each([
    ['{"prompt":{"1":', 'prompt', 'Maximum number of nodes 1 exceeded.'],
    ['{"pr\\u006fmpt" : {"1":', 'prompt', 'Maximum number of nodes 1 exceeded.'],
    ['{"other":{"1":', 'prompt', undefined],
    ['{"a":{"prompt":{"1":', 'prompt', undefined],
    ['["prompt",{"1":', 'prompt', undefined],
    ['{"prompt":[{"1":', 'prompt', undefined],
  ])('counts the members of the graph and of nothing else: %s', (start, graphMember, fault) => {
    const limits = { ...LIMITS, maxNodes: 1 };
    for (const chunkChars of [1, 7, 100]) {
      const reader = new JsonReader({ limits, graphMember });
      const text = `${start}1,"2":1`;
      const faults = [];
      for (let at = 0; at < text.length; at += chunkChars)
        faults.push(reader.push(text.slice(at, at + chunkChars)));
      expect(faults.find((each) => each !== undefined)).toBe(fault);
    }
  });
});

test('numbers and words count, and so do names', () => {
  const reader = new JsonReader({ limits: { ...LIMITS, maxValues: 7 } });
  expect(reader.push('{"a":[1,true,"x"],"b"')).toBeUndefined();
  expect(reader.push(':null}')).toBe('Maximum number of JSON values 7 exceeded.');
});

test('a number has at most 1 MiB, in however many parts', () => {
  for (const parts of [[2 ** 20 + 1], [2 ** 20, 1], [2 ** 20 - 1, 1]]) {
    const reader = new JsonReader({ limits: LIMITS });
    const texts = ['[', ...parts.map((chars) => '1'.repeat(chars)), ']'];
    const faults = texts.flatMap((text) => reader.push(text) ?? []);
    expect(faults.length > 0).toBe(parts[0] !== 2 ** 20 - 1);
  }
});

function outcome(act: () => unknown): string {
  try {
    act();
    return 'read';
  } catch {
    return 'refused';
  }
}
