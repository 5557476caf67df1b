import { randomUUID } from 'node:crypto';

/** Makes ids for prompts; those of one process grow, also within a millisecond. */
export type PromptKeys = (nowMs: number) => string;

/** What the part of a UUID counts up to that stands between its time and its random rest. */
const COUNTER_LIMIT = 0x1000;

/**
 * UUIDs of version 7: who comes later is sorted later, so that prompts written together lie together
 * in the ledger's indexes, and equal numbers have a turn. They are no easier to guess for that.
 */
export function createPromptKeys(): PromptKeys {
  let lastMs = 0;
  let count = 0;
  return (nowMs) => {
    count = nowMs === lastMs ? (count + 1) % COUNTER_LIMIT : 0;
    lastMs = nowMs;
    const time = nowMs.toString(16).padStart(12, '0');
    const counter = count.toString(16).padStart(3, '0');
    return `${time.slice(0, 8)}-${time.slice(8)}-7${counter}${randomUUID().slice(18)}`;
  };
}
