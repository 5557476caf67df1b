import type { Reserver } from '../tensor.ts';
import { CHUNK_CHARS } from './pieces.ts';
import type { NodeContext } from '../node.ts';

/** Longer texts are searched with Knuth, Morris and Pratt. */
const SHORT_CHARS = 256;

type Watched = Reserver & Pick<NodeContext, 'check'>;

/** Returns the next index of a text at or after an index; -1 when there is none. */
export type Finder = (from: number) => number;

/**
 * Searches `find` in a text. `String.prototype.indexOf` compares every pair of characters of two
 * repetitive texts and cannot be interrupted: it gets small pieces only.
 */
export function createFinder(text: string, find: string, context: Watched): Finder {
  return find.length > SHORT_CHARS
    ? createLinearFinder(text, find, context)
    : createShortFinder(text, find, context);
}

function createShortFinder(text: string, find: string, context: Watched): Finder {
  return (from) => {
    for (let at = from; at + find.length <= text.length; at += CHUNK_CHARS) {
      context.check();
      const found = text.slice(at, at + CHUNK_CHARS + find.length - 1).indexOf(find);
      if (found >= 0) return at + found;
    }
    return -1;
  };
}

/** Knuth, Morris and Pratt: each character of the text is compared twice at most. */
function createLinearFinder(text: string, find: string, context: Watched): Finder {
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
