import type { JobEvent } from '../protocol/job-api.ts';

/**
 * Most pictures that wait for a reader: a burst that arrives in one piece is delivered completely.
 */
export const MAX_WAITING_PREVIEWS = 8;

/** Of the previews that wait, the oldest goes when there are too many; nothing else ever does. */
export function dropOldestPreview<Item>(waiting: Item[], isPreview: (item: Item) => boolean): void {
  let seen = 0;
  for (let at = waiting.length - 1; at >= 0; at--) {
    if (isPreview(waiting[at]!) && ++seen >= MAX_WAITING_PREVIEWS) waiting.splice(at, 1);
  }
}

export function isPreview({ event }: JobEvent): boolean {
  return event === 'preview';
}
