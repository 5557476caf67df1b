import { yieldEvery } from './yield-every.ts';

/** Characters written before other work may run; each piece counts as some characters. */
const CHARS_PER_STEP = 256 * 1024;
const CHARS_PER_PIECE = 200;

/** One text of many pieces, with pauses in between. */
export async function joinInSteps(pieces: Iterable<string>): Promise<string> {
  const pause = yieldEvery(CHARS_PER_STEP);
  const parts: string[] = [];
  for (const piece of pieces) {
    parts.push(piece);
    const step = pause(CHARS_PER_PIECE + piece.length);
    if (step) await step;
  }
  return parts.join('');
}
