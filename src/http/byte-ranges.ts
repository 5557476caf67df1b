import parseRange from 'range-parser';

/**
 * Matches a suffix range (the last n bytes), at the start of a list of ranges or behind a comma.
 */
const SUFFIX = /([=,]\s*)-(\d+)/g;

/**
 * Reads a `Range` header. By RFC 9110, a suffix longer than the content means all of it; the parser
 * would take it for a range outside of the content.
 */
export function parseRanges(size: number, header: string): ReturnType<typeof parseRange> {
  const shortened = header.replaceAll(
    SUFFIX,
    (_, before: string, length: string) => `${before}-${Math.min(Number(length), size)}`,
  );
  return parseRange(size, shortened);
}
