/** A day: a longer wait is of no use, and clients obey this value. */
const MAX_SECONDS = 86_400;

/**
 * Seconds of a `Retry-After`, from 0 to a day: a number, or a date, which counts from the answer's
 * own date, or from `nowMs` without one. `undefined`: absent, or without meaning (`-1`, `1.5`,
 * `soon`).
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
  // Any number of digits counts: four hundred digits mean a long wait, not an absent one.
  if (/^\d+$/.test(statedValue)) return Math.min(Number(statedValue), MAX_SECONDS);
  if (!/^[a-z]{3,9}, /i.test(statedValue)) return undefined;
  const answeredAtMs = Date.parse(String(date));
  const seconds =
    (Date.parse(statedValue) - (Number.isNaN(answeredAtMs) ? nowMs : answeredAtMs)) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.min(MAX_SECONDS, Math.max(0, Math.ceil(seconds)));
}
