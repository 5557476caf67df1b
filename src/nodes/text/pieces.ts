import { constants } from 'node:buffer';
import { BYTES_PER_CHAR, type NodeContext, OutOfMemory } from '../node.ts';

/** The maximum number of separate pieces. More pieces are joined. */
const MAX_PIECES = 4096;

/** Reserves the memory of a text before it is built. Throws `OutOfMemory`. */
export function reserveText(context: NodeContext, chars: number): void {
  context.reserve(chars * BYTES_PER_CHAR);
  refuseLongerThanAny(chars);
}

type TextPieces = { add(piece: string): void; text(): string };

/** Builds a text piece by piece. The memory of each piece is reserved when it is added. */
export function createTextPieces(context: NodeContext): TextPieces {
  const blocks: string[] = [];
  const pieces: string[] = [];
  let chars = 0;
  const join = (): void => {
    blocks.push(pieces.join(''));
    pieces.length = 0;
  };
  return {
    add(piece) {
      chars += piece.length;
      context.reserve(piece.length * BYTES_PER_CHAR);
      refuseLongerThanAny(chars);
      pieces.push(piece);
      if (pieces.length >= MAX_PIECES) join();
    },
    text() {
      join();
      return blocks.join('');
    },
  };
}

/** Counts characters as Python does. */
export function countChars(text: string): number {
  let count = text.length;
  for (let at = 1; at < text.length; at++) if (isInsidePair(text, at)) count--;
  return count;
}

/** Returns the offset of the character with this number, which must not be beyond the end. */
export function offsetOf(text: string, chars: number): number {
  let offset = 0;
  for (let i = 0; i < chars; i++) offset += isInsidePair(text, offset + 1) ? 2 : 1;
  return offset;
}

/** True when an index is between the halves of a surrogate pair. */
export function isInsidePair(text: string, at: number): boolean {
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

function refuseLongerThanAny(chars: number): void {
  if (chars <= constants.MAX_STRING_LENGTH) return;
  throw new OutOfMemory(
    `Allocation of a text of ${chars} characters failed: no text can have more than ${constants.MAX_STRING_LENGTH}`,
  );
}
