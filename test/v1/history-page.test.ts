import { describe, expect, test } from 'vitest';
import type { Ledger, PromptOutline } from '../../src/ledger/ledger.ts';
import { historyChunks, paginate } from '../../src/v1/history.ts';
import { latestRuns } from '../../src/v1/job-view.ts';

type Stored = readonly [promptId: string, text: string | null, storedBytes?: number];

/** A ledger with these entries, and what it is asked for at a time. */
function ledgerOf(stored: readonly Stored[]) {
  const asked: (readonly string[])[] = [];
  const entries = async (keys: readonly string[]) => {
    asked.push(keys);
    return keys.map((key) => stored[Number(key)]?.[1] ?? null);
  };
  const outlines = stored.map(
    ([promptId, text, storedBytes = text?.length ?? 0], index) =>
      ({ key: String(index), promptId, storedBytes }) as PromptOutline,
  );
  return { ledger: { prompts: { entries } } as unknown as Ledger, outlines, asked };
}

async function textOf(stored: readonly Stored[]): Promise<string> {
  const { ledger, outlines } = ledgerOf(stored);
  let text = '';
  for await (const piece of historyChunks(ledger, outlines)) text += piece;
  return text;
}

describe('the text of a history', () => {
  test('is stitched from the stored texts, digits and order as they are', async () => {
    const stored: Stored[] = [
      ['b"', '{"n":18446744073709551615}'],
      ['10', '1'],
      ['2', '2'],
    ];
    expect(await textOf(stored)).toBe(String.raw`{"b\"":{"n":18446744073709551615},"10":1,"2":2}`);
  });

  test('of an id used again has its newest run in the place of the first', () => {
    const { outlines } = ledgerOf(['a', 'b', 'a'].map((id) => [id, '']));
    expect(latestRuns(outlines)).toEqual([outlines[2], outlines[1]]);
  });

  test.each<[string, Stored[], string]>([
    ['nothing', [], '{}'],
    [
      'entries that are gone by now',
      [
        ['a', null],
        ['b', null],
      ],
      '{}',
    ],
    [
      'one that is gone, first',
      [
        ['a', null],
        ['b', '1'],
      ],
      '{"b":1}',
    ],
    [
      'one that is gone, last',
      [
        ['a', '1'],
        ['b', null],
      ],
      '{"a":1}',
    ],
  ])('of %s is whole', async (_, stored, text) => expect(await textOf(stored)).toBe(text));

  test('is read in batches by size, a large entry by itself', async () => {
    const small = Array.from({ length: 300 }, (_, n): Stored => [`s${n}`, '1', 1024]);
    const large = (n: number): Stored => [`l${n}`, '2', 100 * 1024 * 1024];
    const { ledger, outlines, asked } = ledgerOf([large(1), large(2), ...small, large(3)]);
    for await (const _ of historyChunks(ledger, outlines));
    expect(asked.map(({ length }) => length)).toEqual([1, 1, 256, 44, 1]);
  });
});

test.each([
  [{}, 'abcde'],
  [{ maxItems: 2 }, 'de'],
  [{ maxItems: 9 }, 'abcde'],
  [{ maxItems: 2, offset: 1 }, 'bc'],
  [{ maxItems: 2, offset: 0 }, 'ab'],
  [{ maxItems: 9, offset: 4 }, 'e'],
  [{ offset: 3 }, 'de'],
  [{ offset: 5 }, ''],
  [{ offset: -2 }, 'abcde'],
  [{ maxItems: 2, offset: -1 }, 'de'],
  [{ maxItems: 0 }, ''],
  [{ maxItems: -1 }, ''],
  [{ maxItems: 0, offset: 1 }, 'b'],
  [{ maxItems: -3, offset: 5 }, ''],
])('%j of five entries is %j', (query, expected) => {
  const { maxItems, offset } = query as { maxItems?: number; offset?: number };
  expect(paginate(['a', 'b', 'c', 'd', 'e'], { maxItems, offset }).join('')).toBe(expected);
});
