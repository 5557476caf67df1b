/** A day. A longer wait is of no use, and clients obey this value. */
const MAX_SECONDS = 86_400;

/**
 * Returns the seconds of a `Retry-After`, from 0 to a day. The header is a number, or a date, which
 * is compared with the answer's own date, or with `nowMs`. `undefined`: the header is absent or has
 * no meaning (`-1`, `1.5`, `soon`).
 */
export function readRetryAfter(
  headers: {
    readonly 'retry-after'?: string | readonly string[] | undefined;
    readonly date?: string | readonly string[] | undefined;
  },
  nowMs: number,
): number | undefined {
  const { 'retry-after': given = '', date = '' } = headers;
  const statedValue = String(given).trim();
  // The number of digits is not limited: four hundred digits mean a long wait, not an absent one.
  if (/^\d+$/.test(statedValue)) return Math.min(Number(statedValue), MAX_SECONDS);
  if (!/^[a-z]{3,9}, /i.test(statedValue)) return undefined;
  const answeredAtMs = Date.parse(String(date));
  const seconds =
    (Date.parse(statedValue) - (Number.isNaN(answeredAtMs) ? nowMs : answeredAtMs)) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil(seconds)));
}
