import type { RecordedEntry } from '../traffic-store.ts';
import { bytesOf, isCut } from './captured-body.ts';
import type { ShowText } from './shown-text.ts';

/**
 * Returns the picture in an entry; `undefined` when only its beginning was recorded, or its bytes contain a key.
 * Pictures carry the graph that made them.
 */
export function pictureIn(recorded: RecordedEntry, showText: ShowText): Buffer | undefined {
  const { contentStart = 0 } = recorded;
  const body = recorded.response ?? recorded.request;
  if (recorded.entry.picture === undefined || body === undefined || isCut(body)) return undefined;
  const bytes = bytesOf(body);
  const text = bytes.toString('latin1');
  return showText(text) === text ? bytes.subarray(contentStart) : undefined;
}
