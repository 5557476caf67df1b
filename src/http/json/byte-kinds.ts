import { OPEN_LIST, OPEN_OBJECT } from './limits.ts';

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** Kind of a byte outside of strings. */
export const Kind = {
  Other: 0,
  Blank: 1,
  Quote: 2,
  Open: 3,
  Close: 4,
  Comma: 5,
  Colon: 6,
} as const;

/** The kind of each byte. */
export const KINDS = kindsOf();

function kindsOf(): Uint8Array {
  const kinds = new Uint8Array(256);
  for (const blank of [0x20, 0x09, 0x0a, 0x0d]) kinds[blank] = Kind.Blank;
  kinds[QUOTE] = Kind.Quote;
  kinds[OPEN_OBJECT] = kinds[OPEN_LIST] = Kind.Open;
  kinds[0x7d] = kinds[0x5d] = Kind.Close;
  kinds[0x2c] = Kind.Comma;
  kinds[0x3a] = Kind.Colon;
  return kinds;
}
