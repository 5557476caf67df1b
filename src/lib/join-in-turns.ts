import { yieldEvery } from './yield-every.ts';

/** So many characters are written before others have their turn; a piece counts as some itself. */
const CHARS_A_TURN = 256 * 1024;
const CHARS_A_PIECE = 200;

/** One text of many pieces, with pauses in between. */
export async function joinInTurns(pieces: Iterable<string>): Promise<string> {
  const pause = yieldEvery(CHARS_A_TURN);
  const parts: string[] = [];
  for (const piece of pieces) {
    parts.push(piece);
    const turn = pause(CHARS_A_PIECE + piece.length);
    if (turn) await turn;
  }
  return parts.join('');
}
