import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { textChunk, writePng } from '../../src/nodes/codecs/png-chunks.ts';
import { findPngText, pngTextAt, withPngText } from '../../src/app/embedded-names.ts';

const TEXT = '{"1": {"inputs": {"image": "a.png"}}}';
const HEADER = { type: 'IHDR', data: randomBytes(13) };
const PIXELS = { type: 'IDAT', data: randomBytes(100) };
const END = { type: 'IEND', data: Buffer.alloc(0) };
const OTHER = textChunk('tEXt', 'prompted', 'no');
const PROMPT = textChunk('tEXt', 'prompt', TEXT);

const FILE = writePng([HEADER, OTHER, PROMPT, PIXELS, END]);

/** As a reader of a stream finds it: with the bytes it is told to wait for, and no more. */
function found(bytes: Buffer): { place: ReturnType<typeof findPngText>; usedBytes: number } {
  for (let usedBytes = 0; ;) {
    const place = findPngText(bytes.subarray(0, usedBytes), 'prompt');
    if (typeof place !== 'number') return { place, usedBytes };
    expect(place).toBeGreaterThan(usedBytes);
    if (place > bytes.length) return { place, usedBytes };
    usedBytes = place;
  }
}

describe('the text of a PNG', () => {
  test('is found with no byte behind its chunk', () => {
    const { place, usedBytes } = found(FILE);
    if (typeof place !== 'object') throw new Error('not found');
    expect(pngTextAt(FILE, place)).toBe(TEXT);
    expect(usedBytes).toBe(place.end + 4);
    expect(findPngText(FILE, 'prompt')).toEqual(place);
  });

  test('is replaced by another of its length, with a checksum that fits, and nothing else is', () => {
    const { place } = found(FILE);
    if (typeof place !== 'object') throw new Error('not found');
    const before = Buffer.from(FILE);
    const text = '{"1": {}}'.padEnd(TEXT.length);
    const changed = withPngText(FILE, place, text);
    const written = writePng([HEADER, OTHER, textChunk('tEXt', 'prompt', text), PIXELS, END]);
    expect(changed.equals(written)).toBe(true);
    expect(FILE.equals(before)).toBe(true);
    expect(() => withPngText(FILE, place, `${text} `)).toThrow(RangeError);
  });

  const damaged = Buffer.from(FILE);
  damaged[damaged.indexOf(TEXT)] = 0x5b;
  const endless = Buffer.from(FILE);
  endless.writeUInt32BE(0xffffffff, 33);
  test.each([
    ['another kind of file', Buffer.from('GIF89a, and so on, for some more bytes')],
    ['no header', writePng([PROMPT, PIXELS, END])],
    ['two headers', writePng([HEADER, HEADER, PROMPT, PIXELS, END])],
    ['no such text', writePng([HEADER, OTHER, PIXELS, END])],
    ['a text behind the pixels', writePng([HEADER, PIXELS, PROMPT, END])],
    ['a compressed text', writePng([HEADER, { ...PROMPT, type: 'zTXt' }, PIXELS, END])],
    ['a wrong checksum', damaged],
    ['a length no chunk has', endless],
  ])('is not found in a file with %s', (_what, bytes) => {
    expect(found(bytes).place).toBeUndefined();
  });

  test('is waited for in a file that is cut off, wherever it is', () => {
    const { usedBytes } = found(FILE);
    for (let bytes = 0; bytes < usedBytes; bytes++) {
      expect(findPngText(FILE.subarray(0, bytes), 'prompt')).toBeGreaterThan(bytes);
    }
  });
});
