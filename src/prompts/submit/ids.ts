import { randomUUID } from 'node:crypto';

/** The counter's range: the 12 bits of a UUID between its time and its random part. */
const COUNTER_LIMIT = 0x1000;

/**
 * Makes ids for prompts. Ids of one process increase, also within a millisecond.
 * UUIDs that begin with the time, as those of version 7: later ones sort later, so that prompts written
 * together are neighbours in the ledger's indexes and equal numbers have an order. Their version is 4, as
 * that of the ids the original makes, since some clients check it. They are as hard to guess as any UUID.
 */
export function createPromptKeys(): (nowMs: number) => string {
  let lastMs = 0;
  let count = 0;
  return (nowMs) => {
    count = nowMs === lastMs ? (count + 1) % COUNTER_LIMIT : 0;
    lastMs = nowMs;
    const time = nowMs.toString(16).padStart(12, '0');
    const counter = count.toString(16).padStart(3, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-4${counter}${randomUUID().slice(18)}`;
  };
}

/** True when v1 clients can put the id into a URL path unchanged. */
export function isPathSafeId(id: string): boolean {
  return /^[\w.~-]{1,300}$/.test(id);
}
