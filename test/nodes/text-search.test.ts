// Two engines find the same; a search that takes too long goes to the other engine, or ends.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  backtrackingEngine,
  type RegexEngine,
  type TextMatch,
  pythonPattern,
} from '../../src/nodes/text/regex.ts';
import { linearEngine } from '../../src/nodes/text/linear.ts';
import { type Search, searchText } from '../../src/nodes/text/search.ts';

const NO_FLAGS = { caseInsensitive: false, multiline: false, dotall: false };
/** Long enough for any pattern that is not hopeless. */
const SHORT = { quickMs: 100, slowMs: 200, totalMs: 20_000 };
const ASKED: Omit<Search, 'pattern' | 'text'> = {
  flags: NO_FLAGS,
  most: Infinity,
  wanted: 'matches',
};

async function search(pattern: string, text: string, more: Partial<Search> = {}, check = () => {}) {
  const found: TextMatch[] = [];
  const asked = { ...ASKED, pattern, text, ...more };
  for await (const batch of searchText(asked, { check }, SHORT)) found.push(...batch);
  return found;
}

/** Whole matches and where they are. */
function spansOf(engine: RegexEngine, text: string): readonly (readonly [number, string])[] {
  const spans: [number, string][] = [];
  for (let at = 0; at <= text.length;) {
    const match = engine.next(at);
    if (!match) break;
    const [whole = ''] = match.groups;
    spans.push([match.index, whole]);
    at = match.index + Math.max(1, whole.length);
  }
  return spans;
}

describe('both engines', () => {
  const simple = fc.constantFrom(
    ...'ab.é'.split(''),
    '\\w',
    '\\d',
    '\\s',
    '\\W',
    '[^a]',
    '[a-c\\s]',
  );
  const place = fc.constantFrom('^', '$', '\\Z', '\\A', '\\b', '\\B');
  const times = fc.constantFrom('', '*', '+', '?', '{2}', '{1,2}', '{,2}');
  const { pattern } = fc.letrec<{ pattern: string; group: string }>((tie) => ({
    pattern: fc.oneof(
      { maxDepth: 4 },
      simple,
      place,
      fc.tuple(fc.oneof(simple, tie('group')), times).map((parts) => parts.join('')),
      fc.tuple(tie('pattern'), tie('pattern')).map((parts) => parts.join('')),
    ),
    // Where a way that may be empty stands before another, JavaScript differs from Python and RE2.
    group: fc
      .tuple(
        fc.constantFrom('(', '(?:', '(?P<name>'),
        fc.oneof(
          tie('pattern').map((part) => [part]),
          fc.array(
            fc.tuple(simple, tie('pattern')).map((parts) => parts.join('')),
            { minLength: 2 },
          ),
        ),
      )
      .map(([open, parts]) => `${open}${parts.join('|')})`),
  }));
  const text = fc
    .array(fc.constantFrom(...'abcéÉſ1 \n_-S'.split('')), { maxLength: 8 })
    .map((chars) => chars.join(''));
  const flags = fc.record({
    caseInsensitive: fc.boolean(),
    multiline: fc.boolean(),
    dotall: fc.boolean(),
  });

  test('find the same in the same texts', () => {
    let compared = 0;
    fc.assert(
      fc.property(pattern, text, flags, (source, value, switches) => {
        const python = pythonPattern(source, switches);
        let usual: RegexEngine;
        try {
          usual = backtrackingEngine(python, value);
        } catch (error) {
          expect(error).toBeInstanceOf(SyntaxError);
          return;
        }
        const linear = linearEngine(python, { text: value, wanted: 'matches' });
        if (!linear) return;
        compared++;
        expect(spansOf(linear, value)).toEqual(spansOf(usual, value));
        const whether = linearEngine(python, { text: value, wanted: 'whether' });
        expect(whether?.next(0) !== undefined).toBe(usual.next(0) !== undefined);
      }),
      { numRuns: 1000 },
    );
    expect(compared).toBeGreaterThan(500);
  });

  test.each([
    ['(?=a)', 'a'],
    ['(?<!a)b', 'b'],
    ['(a)\\1', 'aa'],
    ['(?P<x>a)(?P=x)', 'aa'],
    ['\\bé', 'é'],
    ['a$\\n?', 'b\na\n'],
    ['(?:a$)', 'b\na\n'],
    ['(?:a{1000}){1000}|a', 'a'],
    ['\\u0041', 'A'],
  ])('%j on %j is left to the one that can', (source, value) => {
    const python = pythonPattern(source, NO_FLAGS);
    expect(linearEngine(python, { text: value, wanted: 'matches' })).toBeUndefined();
    expect(backtrackingEngine(python, value).next(0)).toBeDefined();
  });

  test.each(['a*$', '\\s*$', '[^b]*?$', 'c|b$', '(a)|(\n)$', '$', 'a\\$|$', '(?s)(.*?)$'])(
    '%j ends where Python’s does in a text of several lines',
    (source) => {
      const python = pythonPattern(source, NO_FLAGS);
      for (const value of ['b\naa\n', 'aa\nb\n', '\n\n', 'a$\n\na\n']) {
        const linear = linearEngine(python, { text: value, wanted: 'matches' });
        const usual = backtrackingEngine(python, value);
        expect(spansOf(linear!, value)).toEqual(spansOf(usual, value));
        expect(linear!.next(0)?.groups.length).toBe(usual.next(0)?.groups.length);
      }
    },
  );
});

describe('a search that would take for ever', () => {
  const HARD = `${'a'.repeat(40)}!`;

  test.each(['^(a+)+$', '^(\\w+\\s?)*$', '(.*a){20}b', '^(a|a)*$', '(?i)^(A+)+$'])(
    'by %j ends with the answer',
    async (pattern) => {
      expect(await search(pattern, HARD)).toEqual([]);
    },
  );

  test('goes on behind what was found already, and fills groups', async () => {
    const [first, ...rest] = await search('(?P<key>b)|(?:(?:a+)+)c', `b${'a'.repeat(40)}b`);
    expect(first).toMatchObject({ index: 0, named: { key: 'b' } });
    expect(rest.map(({ index, groups }) => [index, ...groups])).toEqual([[41, 'b', 'b']]);
  });

  test.each(['^(a+)+\\1$', '^(a+)+(?=b)', '^(a+)+(?<!a)$'])(
    'by %j ends with an error that says so',
    async (pattern) => {
      const looks: number[] = [];
      const result = search(pattern, HARD, {}, () => looks.push(1));
      await expect(result).rejects.toMatchObject({
        exceptionType: 'TimeoutError',
        message: expect.stringContaining(pattern),
      });
      expect(looks.length).toBeGreaterThan(1);
    },
  );

  test('looks at the stop flag between matches', async () => {
    let looks = 0;
    const stop = () => {
      if (++looks > 3) throw new Error('stopped');
    };
    await expect(search('a', 'a'.repeat(1e6), {}, stop)).rejects.toThrow('stopped');
  });

  test('finds no more than it is asked for', async () => {
    expect(await search('a', 'a'.repeat(1e6), { most: 2 })).toHaveLength(2);
  });
});
