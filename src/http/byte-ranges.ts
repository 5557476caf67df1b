import parseRange from 'range-parser';

/**
 * Matches a suffix range (the last n bytes), at the start of a list of ranges or behind a comma.
 */
const SUFFIX = /([=,]\s*)-(\d+)/g;

/**
 * Reads a `Range` header. By RFC 9110, a suffix longer than the content means all of it; the parser
 * would take it for a range outside of the content.
 */
export function parseRanges(size: number, header: string): parseRange.Result | parseRange.Ranges {
  return parseRange(size, withinContent(size, header));
}

function withinContent(size: number, header: string): string {
  return header.replaceAll(
    SUFFIX,
    (_, before: string, length: string) => `${before}-${Math.min(Number(length), size)}`,
  );
}

/** One range in v1's form: it refuses several, other units, and what it cannot read. */
const ONE_RANGE = /^bytes=(\d+-\d*|-\d+)$/;

/** The header of a request for one range; `undefined` in v1 is a range outside of the content. */
export function readOneRange(header: string): string | undefined {
  const text = header.trim().toLowerCase();
  return ONE_RANGE.test(text) ? text : undefined;
}

/** The same as a header that says so to every reader of it, for content of this size. */
export function toPlainRange(size: number, header: string): string {
  const range = readOneRange(header);
  return range === undefined ? `bytes=${size}-` : withinContent(size, range);
}
