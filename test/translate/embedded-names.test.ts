import { describe, expect, test } from 'vitest';
import { namesUploads, withSubmittedNames } from '../../src/translate/embedded-file-names.ts';

const FOLDER = 'holdover-0123456789abcdef';

const unknown = () => undefined;

/** The only input of a prompt after its names are restored. */
function restored(image: string, submittedName: (path: string) => string | undefined = unknown) {
  const text = JSON.stringify({ '1': { inputs: { image } } });
  const named = withSubmittedNames(text, submittedName);
  expect(named.length).toBe(text.length);
  return JSON.parse(named)['1'].inputs.image;
}

describe('the names in an embedded prompt', () => {
  test.each([
    ['lab%20up.png', 'lab up.png'],
    ['hers.png', 'hers.png'],
    ['sub/lab%20up.png', 'sub/lab up.png'],
    // A folder is not encoded.
    ['a%20b/lab%20up.png', 'a%20b/lab up.png'],
    ['100%25.png', '100%.png'],
    ['it%27s%20%28me%29%21%2A.png', "it's (me)!*.png"],
    ['%C3%A9.png', 'é.png'],
    ['%F0%9F%98%80.png', '😀.png'],
    // No form library writes these.
    ['a b%20c.png', 'a b%20c.png'],
    ['half%2.png', 'half%2.png'],
    ['%ff.png', '%ff.png'],
    ['small%c3%a9.png', 'small%c3%a9.png'],
  ])('%s is %s', (name, shown) => {
    expect(restored(`${FOLDER}/${name}`)).toBe(shown);
  });

  test('are those of the prompt, where it names the file', () => {
    const known: Record<string, string> = {
      'lab up.png': 'lab up.png [input]',
      'temp/x.png': 'x.png [temp]',
      'a%20b.png': 'a%20b.png',
      [`${FOLDER}/own.png`]: `${FOLDER}/own.png`,
    };
    const name = (path: string) => known[path];
    expect(restored(`${FOLDER}/lab%20up.png`, name)).toBe('lab up.png [input]');
    expect(restored(`${FOLDER}/temp/x.png`, name)).toBe('x.png [temp]');
    // Of an engine that decodes names, or a service that does not encode them.
    expect(restored(`${FOLDER}/a%20b.png`, name)).toBe('a%20b.png');
    expect(restored(`${FOLDER}/own.png`, name)).toBe(`${FOLDER}/own.png`);
  });

  test('are all that changes, digits and spaces included', () => {
    const rest =
      '"seed": 18446744073709551615, "is_changed": [NaN], "text": "a \\"quoted\\" \\u00e9"';
    const text = `{"1": {"inputs": {"image": "${FOLDER}/lab%20up.png", ${rest}}}}`;
    const named = `{"1": {"inputs": {"image": "lab up.png", ${rest}}}}`;
    expect(withSubmittedNames(text, unknown)).toBe(named.padEnd(text.length));
  });

  test.each([
    `{"text": "see ${FOLDER}/x.png"}`,
    `{"text": "say \\"${FOLDER}/x.png\\""}`,
    `{"image": "${FOLDER}0/x.png"}`,
    `{"image": "${FOLDER}"}`,
    `{"image": "other-0123456789abcdef/x.png"}`,
  ])('stay as they are in %s', (text) => {
    expect(namesUploads(text)).toBe(false);
    expect(withSubmittedNames(text, unknown)).toBe(text);
  });

  test('stay as they are when there is no room for the ones submitted', () => {
    const text = `{"image": "${FOLDER}/x.png"}`;
    expect(withSubmittedNames(text, () => './'.repeat(40))).toBe(text);
  });
});
