import { randomUUID } from 'node:crypto';

/** The range of the counter: the 12 bits of a UUID behind its version. */
const COUNTER_LIMIT = 0x1000;
/** The positions of the counter's digits in the text of a UUID. */
const COUNTER = { from: 15, to: 18 } as const;

/**
 * Makes ids for prompts: UUIDs of version 4 like the original's, since some clients check that.
 * Clients also name files and jobs by the first eight digits of an id; those are random. Three
 * later digits count the ids that one process made in a millisecond, so that prompts with equal
 * numbers have an order.
 */
export function createPromptKeys(): (nowMs: number) => string {
  let lastMs = 0;
  let count = 0;
  return (nowMs) => {
    count = nowMs === lastMs ? (count + 1) % COUNTER_LIMIT : 0;
    lastMs = nowMs;
    const id = randomUUID();
    const counter = count.toString(16).padStart(3, '0');
    return id.slice(0, COUNTER.from) + counter + id.slice(COUNTER.to);
  };
}

/** Compares ids that were made in the same millisecond: the id that was made first is lower. */
export function compareIds(a: string, b: string): number {
  const [one, other] = [a, b].map((id) => id.slice(COUNTER.from, COUNTER.to) + id);
  if (one === other) return 0;
  return (one ?? '') < (other ?? '') ? -1 : 1;
}

/** True when v1 clients can put the id into a URL path unchanged: `.` and `..` would shorten it. */
export function isPathSafeId(id: string): boolean {
  return /^(?!\.{1,2}$)[\w.~-]{1,300}$/.test(id);
}
