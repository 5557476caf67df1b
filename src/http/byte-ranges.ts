import parseRange from 'range-parser';

/** The last so many bytes, at the start of a list of ranges or behind a comma. */
const SUFFIX = /([=,]\s*)-(\d+)/g;

/**
 * Reads a `Range` header. RFC 9110: when the content is shorter than the end that is asked for, all of it is
 * meant; the parser takes such an end for a range outside of the content.
 */
export function parseRanges(size: number, header: string): ReturnType<typeof parseRange> {
  const shortened = header.replaceAll(
    SUFFIX,
    (_, before: string, length: string) => `${before}-${Math.min(Number(length), size)}`,
  );
  return parseRange(size, shortened);
}
