// How much is built between two turns of the event loop, whatever the body holds.
import { describe, expect, test } from 'vitest';
import { parseWithinLimits } from '../../../src/http/json-body.ts';
import { buildJson } from '../../../src/http/json/builder.ts';
import { JsonScanner } from '../../../src/http/json/scanner.ts';
import { stringifyJson } from '../../../src/protocol/json.ts';

const LIMITS = { maxValues: 500_000, maxDepth: 200, maxNodes: 10_000 };

/** Builds bodies side by side; the most bytes that were built in one turn, of all together. */
async function mostBytesPerTurn(texts: readonly string[]): Promise<number> {
  let most = 0;
  let inTurn = 0;
  let isOver = false;
  const tick = (): void => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (!isOver) setImmediate(tick);
  };
  tick();
  const built = texts.map(async (text) => {
    const bytes = Buffer.from(text);
    const scanner = new JsonScanner(LIMITS, 'prompt');
    scanner.push(bytes);
    const scan = scanner.end();
    if ('kind' in scan) throw new Error(scan.message);
    await buildJson(scan, (start, end) => {
      // A long string is taken whole, and read in pieces.
      inTurn += Math.min(end - start, 2 * 1024 * 1024);
      return bytes.subarray(start, end);
    });
  });
  await Promise.all(built);
  isOver = true;
  return most;
}

const node = (i: number): string => `"${i}":{"class_type":"PreviewAny","inputs":{"source":"x"}}`;
const graph = `{"prompt":{${Array.from({ length: 10_000 }, (_, i) => node(i)).join(',')}}}`;
const numbers = `{"prompt":{},"extra_data":{"a":[${'1e400,'.repeat(400_000)}1]}}`;
const keys = `{"a":{${Array.from({ length: 400_000 }, (_, i) => `"k${i}":1`).join(',')}}}`;
const strings = `[${Array.from({ length: 60 }, () => `"${'QUJD'.repeat(50_000)}"`).join(',')}]`;

describe('between two turns of the event loop', () => {
  test.each([
    ['a graph of 10 000 nodes', graph],
    ['400 000 numbers in one list', numbers],
    ['400 000 members of one object', keys],
  ])('%s is built in parts of 300 KB at most', async (_, text) => {
    expect(text.length).toBeGreaterThan(500_000);
    expect(await mostBytesPerTurn([text])).toBeLessThan(300 * 1024);
  });

  test('strings of 200 KB are built one or two at a time', async () => {
    expect(await mostBytesPerTurn([strings])).toBeLessThan(700 * 1024);
  });

  test('several bodies together do no more than one', async () => {
    const alone = await mostBytesPerTurn([numbers]);
    // They begin at once, and then take turns.
    const together = await mostBytesPerTurn([numbers, numbers, numbers, numbers]);
    expect(together).toBeLessThanOrEqual(4 * alone);
    expect(together).toBeLessThan(300 * 1024);
  });
});

test('a copy that holds too much is not built', async () => {
  expect(await parseWithinLimits(Buffer.from(`[${'[],'.repeat(600_000)}1]`))).toBeUndefined();
  expect(await parseWithinLimits(Buffer.from('{"a":'))).toBeUndefined();
  const value = await parseWithinLimits(Buffer.from('{"a":18446744073709551615}'));
  expect(value && stringifyJson(value)).toBe('{"a":18446744073709551615}');
});
