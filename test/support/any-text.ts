import fc from 'fast-check';

/** Any code point but surrogates. The `binary` of fast-check first makes a map of all of them: half a second. */
export const anyCharacter = fc
  .nat({ max: 0x10ffff })
  .filter((n) => n < 0xd800 || n > 0xdfff)
  .map(
    (n) => String.fromCodePoint(n),
    (text) => {
      const first = String(text).codePointAt(0) ?? 0;
      return String.fromCodePoint(first) === text ? first : Number.NaN;
    },
  );
export const anyText = fc.string({ unit: anyCharacter });
