import { constants } from 'node:buffer';
import { type NodeContext, OutOfMemory, BYTES_PER_CHAR } from '../node.ts';
import type { Reserver } from '../tensor.ts';

/** The characters that are processed between two checks of the stop flag. */
export const CHUNK_CHARS = 65_536;

/** The maximum number of separate pieces. More pieces are joined. */
const MAX_PIECES = 4096;

/** Reserves the memory of a text before it is built. Throws `OutOfMemory`. */
export function reserveText(context: Reserver, chars: number): void {
  context.reserve(chars * BYTES_PER_CHAR);
  refuseLongerThanAny(chars);
}

/** Builds a text piece by piece. The memory of each piece is reserved when it is added. */
export function createTextPieces(context: Reserver) {
  const blocks: string[] = [];
  const pieces: string[] = [];
  let chars = 0;
  const join = (): void => {
    blocks.push(pieces.join(''));
    pieces.length = 0;
  };
  return {
    add(piece: string): void {
      chars += piece.length;
      context.reserve(piece.length * BYTES_PER_CHAR);
      refuseLongerThanAny(chars);
      pieces.push(piece);
      if (pieces.length >= MAX_PIECES) join();
    },
    text(): string {
      join();
      return blocks.join('');
    },
  };
}

/** Yields a text in pieces that split no character. */
export function* chunksOf(text: string, context: NodeContext): Generator<string> {
  for (let from = 0; from < text.length;) {
    context.check();
    const to = endOfChunk(text, from);
    yield text.slice(from, to);
    from = to;
  }
}

/** Returns the end of the piece that begins at an index. It splits no character. */
export function endOfChunk(text: string, from: number): number {
  const to = Math.min(text.length, from + CHUNK_CHARS);
  return isInsidePair(text, to) ? to + 1 : to;
}

/** Counts characters as Python does. */
export function countChars(text: string, context: NodeContext): number {
  let count = 0;
  for (const chunk of chunksOf(text, context)) count += charsIn(chunk);
  return count;
}

/** Returns the offset of the character with this number, which must not be beyond the end. */
export function offsetOf(text: string, chars: number, context: NodeContext): number {
  let offset = 0;
  let left = chars;
  for (const chunk of chunksOf(text, context)) {
    const inChunk = charsIn(chunk);
    if (inChunk > left) return offset + offsetIn(chunk, left);
    left -= inChunk;
    offset += chunk.length;
  }
  return offset;
}

/** True when an index is between the halves of a surrogate pair. */
export function isInsidePair(text: string, at: number): boolean {
  const [before, after] = [text.charCodeAt(at - 1), text.charCodeAt(at)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

function charsIn(chunk: string): number {
  let pairs = 0;
  for (let at = 1; at < chunk.length; at++) if (isInsidePair(chunk, at)) pairs++;
  return chunk.length - pairs;
}

function offsetIn(chunk: string, chars: number): number {
  let offset = 0;
  for (let i = 0; i < chars; i++) offset += isInsidePair(chunk, offset + 1) ? 2 : 1;
  return offset;
}

function refuseLongerThanAny(chars: number): void {
  if (chars <= constants.MAX_STRING_LENGTH) return;
  throw new OutOfMemory(
    `Allocation of a text of ${chars} characters failed: no text can have more than ${constants.MAX_STRING_LENGTH}`,
  );
}
