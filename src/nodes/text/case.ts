import type { NodeContext } from '../node.ts';
import type { Reserver } from '../tensor.ts';
import { createTextPieces, endOfChunk, isInsidePair } from './pieces.ts';

type Watched = Reserver & Pick<NodeContext, 'check'>;

const CASED = /\p{Cased}+/gu;

export const upperCase = converter((chunk) => chunk.toUpperCase());

export const lowerCase = converter((chunk) => chunk.toLowerCase());

/** Returns the text with a capital at the start of every run of letters. */
export const titleCase = converter((chunk) => chunk.replaceAll(CASED, capitalised));

/** Returns the text with its first character in upper case and all others in lower case. */
export function capitalCase(text: string, context: Watched): string {
  const first = firstChar(text);
  return first.toUpperCase() + lowerCase(text.slice(first.length), context);
}

function converter(convert: (chunk: string) => string) {
  return (text: string, context: Watched): string => {
    const pieces = createTextPieces(context);
    for (const chunk of caseChunksOf(text, context)) pieces.add(convert(chunk));
    return pieces.text();
  };
}

function capitalised(run: string): string {
  const first = firstChar(run);
  return first.toUpperCase() + run.slice(first.length).toLowerCase();
}

function firstChar(text: string): string {
  return text.slice(0, isInsidePair(text, 1) ? 2 : 1);
}

/**
 * Yields the text in pieces whose case changes as in the whole. The lower case of a sigma depends
 * on the letters around it, also across characters that have no case of their own.
 */
function* caseChunksOf(text: string, context: Watched): Generator<string> {
  const independent = /[^\p{Cased}\p{Case_Ignorable}]/gu;
  for (let from = 0; from < text.length;) {
    context.check();
    independent.lastIndex = endOfChunk(text, from);
    const to = independent.exec(text)?.index ?? text.length;
    yield text.slice(from, to);
    from = to;
  }
}
