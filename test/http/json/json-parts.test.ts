import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildJson } from '../../../src/http/json/builder.ts';
import type { JsonLimits, PartSizes } from '../../../src/http/json/limits.ts';
import { JsonScanner } from '../../../src/http/json/scanner.ts';
import { parseJson, stringifyJson } from '../../../src/protocol/json.ts';

const LIMITS: JsonLimits = { maxValues: 1e9, maxDepth: 200, maxNodes: 1e9 };
const TINY: PartSizes = { bytes: 5, values: 2, longBytes: 9 };

/** Reads a text that arrives in chunks of this size, cut into parts of these sizes. */
async function read(text: string | Buffer, chunkBytes = 3, sizes = TINY): Promise<string> {
  const bytes = Buffer.from(text);
  const scanner = new JsonScanner({ ...LIMITS, maxDepth: 200 }, 'prompt', sizes);
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    scanner.push(bytes.subarray(at, at + chunkBytes));
  }
  const scan = scanner.end();
  if ('kind' in scan) throw new SyntaxError(scan.message);
  return stringifyJson(await buildJson(scan, bytes.subarray.bind(bytes)));
}

const number = fc.constantFrom('0', '-1.5', '1e400', '18446744073709551615', '9007199254740993');
const string = fc
  .oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('\\', '"', '__proto__', '1', 'ü€😀'.repeat(5), '\\"'.repeat(9)),
  )
  .map((text) => JSON.stringify(text));
const name = fc
  .constantFrom('a', 'b', '1', '__proto__', '', 'prompt', 'ü"\\')
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

describe('a text that is built part by part', () => {
  test('says what it says as a whole, however it arrives', async () => {
    await fc.assert(
      fc.asyncProperty(texts, fc.integer({ min: 1, max: 40 }), async (text, chunkBytes) => {
        expect(await read(text, chunkBytes)).toBe(stringifyJson(parseJson(text)));
      }),
      { numRuns: 1000 },
    );
  });

  test('is refused exactly when it is as a whole', async () => {
    const marks = [
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"long enough"',
      '1',
      'tru',
      ' ',
      '\\',
      '"',
    ];
    const broken = fc
      .array(fc.constantFrom(...marks), { maxLength: 12 })
      .map((all) => all.join(''));
    const spoiled = fc.tuple(texts, fc.nat(), fc.constantFrom(...marks)).map(([text, at, mark]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + mark + text.slice(place);
    });
    await fc.assert(
      fc.asyncProperty(fc.oneof(broken, spoiled), async (given) => {
        const text = Buffer.from(given).toString();
        const whole = await Promise.resolve(text)
          .then(parseJson)
          .then(stringifyJson, () => 'refused');
        expect(await read(text).catch(() => 'refused')).toBe(whole);
      }),
      { numRuns: 3000 },
    );
  });

  test('may begin with a byte order mark', async () => {
    expect(await read('\ufeff[1,2,[3,4,5],6,7]', 1)).toBe('[1,2,[3,4,5],6,7]');
  });

  test('is refused where it is not UTF-8', async () => {
    const bytes = Buffer.concat([
      Buffer.from('{"a":[1,2,3,"'),
      Buffer.from([0xc3]),
      Buffer.from('"]}'),
    ]);
    await expect(read(bytes)).rejects.toThrow();
  });
});
