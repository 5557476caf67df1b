import fc from 'fast-check';
import { expect, test } from 'vitest';
import { locationOf } from '../../src/files/name-output.ts';
import { parseAnnotation, safeName, withinRoot } from '../../src/files/safe-name.ts';
import { anyText } from '../support/any-text.ts';

const odd = fc.oneof(
  anyText,
  fc
    .array(fc.constantFrom('.', '..', '/', '\\', ' ', 'CON', '[output]', 'x', '.png', ':', '\r\n'))
    .map((parts) => parts.join('')),
);

test('whatever an upstream calls an output, `/view` finds the name it gets', () => {
  fc.assert(
    fc.property(odd, odd, (name, folder) => {
      const { filename, subfolder } = locationOf(name, folder);
      expect(safeName(filename)).toBe(filename);
      expect(filename).not.toContain('..');
      expect(parseAnnotation(filename).type).toBeUndefined();
      expect(withinRoot(subfolder)).toBe(subfolder);
    }),
    { numRuns: 2000 },
  );
});

test.each([
  ['ComfyUI_00001_.png', '', 'ComfyUI_00001_.png', ''],
  ['grüße 漢字.png', 'a/b', 'grüße 漢字.png', 'a/b'],
  ['c/x.png', 'a/b', 'x.png', 'a/b/c'],
])('what is well named keeps its name: %s in %j', (name, folder, filename, subfolder) => {
  expect(locationOf(name, folder)).toEqual({ filename, subfolder });
});

test('a name of many spaces takes time in proportion to its length', () => {
  // Time that grows with the square would be minutes.
  expect(locationOf(`?${' '.repeat(1024 * 1024)}x`).filename).toMatch(/^__ +$/);
});
