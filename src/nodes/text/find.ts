import type { Reserver } from '../tensor.ts';
import { CHUNK_CHARS } from './pieces.ts';
import type { NodeContext } from '../node.ts';

type Watched = Reserver & Pick<NodeContext, 'check'>;

/** Answers where a text stands next, at or behind a place; -1: nowhere. */
export type Finder = (from: number) => number;

/**
 * Looks for `find` in a text by the way of Knuth, Morris and Pratt: each character of the text is looked
 * at twice at most. `String.prototype.indexOf` compares every character of the one with every character
 * of the other where both repeat themselves, and nothing can end it meanwhile.
 */
export function createFinder(text: string, find: string, context: Watched): Finder {
  context.reserve(find.length * Int32Array.BYTES_PER_ELEMENT);
  const borders = bordersOf(find, context);
  return (from) => {
    let matched = 0;
    for (let at = from; at < text.length; at++) {
      if (at % CHUNK_CHARS === 0) context.check();
      const code = text.charCodeAt(at);
      while (matched > 0 && code !== find.charCodeAt(matched)) matched = borders[matched - 1] ?? 0;
      if (code === find.charCodeAt(matched)) matched++;
      if (matched === find.length) return at + 1 - matched;
    }
    return -1;
  };
}

/** For each beginning of a text, how long the longest shorter beginning is that it ends with. */
function bordersOf(find: string, context: Watched): Int32Array {
  const borders = new Int32Array(find.length);
  let length = 0;
  for (let at = 1; at < find.length; at++) {
    if (at % CHUNK_CHARS === 0) context.check();
    const code = find.charCodeAt(at);
    while (length > 0 && code !== find.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (code === find.charCodeAt(length)) length++;
    borders[at] = length;
  }
  return borders;
}
