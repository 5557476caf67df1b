/** A day: a longer wait is not worth it, and a client that is told so may believe it. */
const MOST_SECONDS = 86_400;

/**
 * Seconds a `Retry-After` asks to wait, from 0 to a day: a number, or a date, which counts from the
 * answer's own date, and without one from `nowMs`. `undefined`: there is none, or it says nothing
 * (`-1`, `1.5`, `soon`).
 */
export function readRetryAfter(
  headers: {
    readonly 'retry-after'?: string | readonly string[] | undefined;
    readonly date?: string | readonly string[] | undefined;
  },
  nowMs: number,
): number | undefined {
  const { 'retry-after': given = '', date = '' } = headers;
  const said = String(given).trim();
  // Of any length: four hundred digits are a long time, not none.
  if (/^\d+$/.test(said)) return Math.min(Number(said), MOST_SECONDS);
  if (!/^[a-z]{3,9}, /i.test(said)) return undefined;
  const saidAtMs = Date.parse(String(date));
  const seconds = (Date.parse(said) - (Number.isNaN(saidAtMs) ? nowMs : saidAtMs)) / 1000;
  return Number.isNaN(seconds)
    ? undefined
    : Math.min(MOST_SECONDS, Math.max(0, Math.ceil(seconds)));
}
