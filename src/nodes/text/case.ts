import type { NodeContext } from '../node.ts';
import type { Reserver } from '../tensor.ts';
import { CHUNK_CHARS, chunksOf, createTextPieces, isInsidePair } from './pieces.ts';

type Watched = Reserver & Pick<NodeContext, 'check'>;

/**
 * Matches the letter whose lower case depends on its neighbours, and the characters that are
 * skipped between them.
 */
const DEPENDS = /^[\u03a3\p{Case_Ignorable}]$/u;
const CASED = /\p{Cased}+/gu;
const ENDS_CASED = /\p{Cased}$/u;

export function upperCase(text: string, context: Watched): string {
  const pieces = createTextPieces(context);
  for (const chunk of chunksOf(text, context)) pieces.add(chunk.toUpperCase());
  return pieces.text();
}

export function lowerCase(text: string, context: Watched): string {
  const pieces = createTextPieces(context);
  for (const chunk of caseChunksOf(text, context)) pieces.add(chunk.toLowerCase());
  return pieces.text();
}

/** Returns the text with its first character in upper case and all others in lower case. */
export function capitalCase(text: string, context: Watched): string {
  const first = firstChar(text);
  const pieces = createTextPieces(context);
  pieces.add(first.toUpperCase());
  pieces.add(lowerCase(text.slice(first.length), context));
  return pieces.text();
}

/** Returns the text with a capital at the start of every run of letters. */
export function titleCase(text: string, context: Watched): string {
  const pieces = createTextPieces(context);
  let isInRun = false;
  for (const chunk of caseChunksOf(text, context)) {
    const goesOn = isInRun;
    pieces.add(
      chunk.replaceAll(CASED, (run, at: number) =>
        goesOn && at === 0 ? run.toLowerCase() : capitalised(run),
      ),
    );
    isInRun = ENDS_CASED.test(chunk.slice(-2));
  }
  return pieces.text();
}

function capitalised(run: string): string {
  const first = firstChar(run);
  return first.toUpperCase() + run.slice(first.length).toLowerCase();
}

function firstChar(text: string): string {
  return text.slice(0, isInsidePair(text, 1) ? 2 : 1);
}

/**
 * Yields the text in pieces whose lower case is that of the whole: a sigma depends on its
 * neighbours, so it is never cut from them.
 */
function* caseChunksOf(text: string, context: Watched): Generator<string> {
  for (let from = 0; from < text.length;) {
    context.check();
    const to = cutNear(text, from);
    yield text.slice(from, to);
    from = to;
  }
}

function cutNear(text: string, from: number): number {
  const aim = from + CHUNK_CHARS;
  if (aim >= text.length) return text.length;
  for (let cut = aim; cut > from; cut--) if (mayCut(text, cut)) return cut;
  for (let cut = aim + 1; cut < text.length; cut++) if (mayCut(text, cut)) return cut;
  return text.length;
}

function mayCut(text: string, at: number): boolean {
  if (isInsidePair(text, at)) return false;
  const before = text.slice(isInsidePair(text, at - 1) ? at - 2 : at - 1, at);
  return !DEPENDS.test(before) && !DEPENDS.test(firstChar(text.slice(at, at + 2)));
}
