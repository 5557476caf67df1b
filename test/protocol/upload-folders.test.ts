import { expect, test } from 'vitest';
import {
  contentName,
  hashInContentName,
  withGivenNames,
} from '../../src/protocol/upload-folders.ts';

const DIGITS = '0a'.repeat(32);
const OTHER = '1b'.repeat(32);
const FOLDER = 'holdover-0123456789abcdef';
const NAMES = new Map([[`blake3:${DIGITS}`, 'sub/my cat.png']]);

test('a content name has the hash of the upload, and is read again', () => {
  const name = contentName(`blake3:${DIGITS}`, 'input/sub/my cat.png');
  expect(name).toBe(`${DIGITS}.png`);
  expect(hashInContentName(name)).toBe(`blake3:${DIGITS}`);
  expect(contentName(`blake3:${DIGITS}`, 'a.b/no extension')).toBe(DIGITS);
  expect(hashInContentName(`x${name}`)).toBeUndefined();
});

test.each([
  [`no input/${FOLDER}/${DIGITS}.png`, 'no input/sub/my cat.png'],
  [`no ${FOLDER}\\\\${DIGITS}.png`, 'no sub/my cat.png'],
  [`${DIGITS}_00001_.webp`, 'sub/my cat_00001_.webp'],
  [`${DIGITS}.webp`, 'sub/my cat.webp'],
  [`${FOLDER}/${OTHER}.png`, `${OTHER}.png`],
  [`${DIGITS}${OTHER}`, `${DIGITS}${OTHER}`],
])('%s is shown with the given name', (text, shown) => {
  expect(withGivenNames({ a: [text, 1] }, NAMES)).toEqual({ a: [shown, 1] });
});
