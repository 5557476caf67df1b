import fc from 'fast-check';

/** Any code point but surrogates. The `binary` of fast-check first makes a map of all of them: half a second. */
export const anyCharacter = fc
  .nat({ max: 0x10ffff })
  .filter((n) => n < 0xd800 || n > 0xdfff)
  .map(
    (n) => String.fromCodePoint(n),
    (text) => ([...(text as string)].length === 1 ? (text as string).codePointAt(0)! : Number.NaN),
  );
export const anyText = fc.string({ unit: anyCharacter });
