/** The most JSON that one body may hold. */
export type JsonLimits = {
  readonly maxValues: number;
  readonly maxDepth: number;
  /**
   * The limit for the members of the graph, which is the member `graphMember` of the outermost
   * object.
   */
  readonly maxNodes: number;
};

/** Why a body is refused: it holds too much, or it is not JSON. */
export type ScanFault = { readonly kind: 'too much' | 'syntax'; readonly message: string };

/**
 * A position where the text can be cut in two. The first part ends at `end`, the second one begins
 * at `next`. Offsets are bytes of the body.
 */
export type Cut = {
  readonly end: number;
  readonly next: number;
  /** The containers that are open here, outermost first. */
  readonly open: readonly OpenContainer[];
  /** The number of containers that were open at the previous cut and still are. */
  readonly stillOpen: number;
  /** A long string lies between `end` and `next`. */
  readonly isLong: boolean;
  /** True when a number in the part before the cut may not fit a double. */
  readonly isExact: boolean;
};

/**
 * `type` is `{` or `[`. `nameAt` and `nameEnd` bound its last member name; they are -1 in a list.
 */
export type OpenContainer = {
  readonly type: number;
  readonly nameAt: number;
  readonly nameEnd: number;
};

/** The result for a text with a correct structure. */
export type Scan = {
  readonly cuts: readonly Cut[];
  readonly bytes: number;
  readonly values: number;
  /** True when a number in the last part may not fit a double. */
  readonly isExact: boolean;
};

export const OPEN_OBJECT = 0x7b;
export const OPEN_LIST = 0x5b;

/** The sizes at which a text is cut into parts. */
export type PartSizes = {
  /** A part is cut when it reaches this many bytes or values. */
  readonly bytes: number;
  readonly values: number;
  /** Longer strings are cut out of the text and read separately. */
  readonly longBytes: number;
};

export const PART_SIZES: PartSizes = { bytes: 256 * 1024, values: 4_000, longBytes: 256 * 1024 };

export function tooManyNodes({ maxNodes }: Pick<JsonLimits, 'maxNodes'>): string {
  return `Maximum number of nodes ${maxNodes} exceeded.`;
}

export const QUOTE = 0x22;
export const BACKSLASH = 0x5c;

/** The kind of a byte outside of strings. */
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
