import { posix } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseAnnotation, safeFolder, safeName, withinRoot } from '../../src/files/safe-name.ts';
import { anyText } from '../support/any-text.ts';

const PIECES = [
  '..',
  '.',
  '/',
  '\\',
  '\0',
  '\n',
  '\u202e',
  '\ud800',
  '::',
  ' ',
  'a',
  '.png',
  'CON',
  '猫',
  '%2e',
  '~',
  '-',
];

/** Texts made of everything that ever broke a path, and any text at all. */
const nasty = fc.oneof(
  anyText,
  fc.array(fc.constantFrom(...PIECES), { maxLength: 12 }).map((pieces) => pieces.join('')),
);

describe('safeName', () => {
  test.each(['a.png ', '\ud800', '\ufffd'])('refuses %j', (name) =>
    expect(safeName(name)).toBeUndefined(),
  );

  test('what it takes is one path part, visible, and unchanged', () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const name = safeName(text);
        if (name === undefined) return;
        expect(name).toBe(text);
        expect(posix.join('/root', name)).toBe(`/root/${name}`);
        expect(posix.basename(name)).toBe(name);
        expect(name).not.toMatch(/[\p{Cc}\p{Cs}\\/]/u);
      }),
    );
  });
});

describe('safeFolder', () => {
  test.each([
    ['', ''],
    ['a/..', ''],
    ['s//t/', 's/t'],
    ['s/./t', 's/t'],
    ['s/../t', 't'],
  ])('resolves %j to %j', (given, folder) => expect(safeFolder(given)).toBe(folder));

  test.each(['a /b', 'a\0b'])('refuses %j', (given) => expect(safeFolder(given)).toBeUndefined());

  test('a safe folder and a safe name never leave the root, and are stable', () => {
    fc.assert(
      fc.property(nasty, nasty, (a, b) => {
        const [folder, name] = [safeFolder(a), safeName(b)];
        if (folder === undefined || name === undefined) return;
        expect(posix.join('/root', folder, name).startsWith('/root/')).toBe(true);
        expect(safeFolder(folder)).toBe(folder);
      }),
    );
  });

  test('a folder within the root stays there', () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const folder = withinRoot(text);
        if (folder === undefined) return;
        expect(`${posix.join('/root', folder)}/`.startsWith('/root/')).toBe(true);
      }),
    );
  });
});

describe('annotated', () => {
  test.each([
    ['x.png [output]', { name: 'x.png', type: 'output' }],
    ['clipspace/m.png [input]', { name: 'clipspace/m.png', type: 'input' }],
    ['x.png [temp]', { name: 'x.png', type: 'temp' }],
    ['x.png[input]', { name: 'x.png[input]' }],
    ['x.png [foo]', { name: 'x.png [foo]' }],
    ['x.png', { name: 'x.png' }],
  ])('%s', (value, parts) => expect(parseAnnotation(value)).toEqual(parts));
});
