import type { NodeContext, NodeDef } from '../node.ts';
import { combo } from '../combo.ts';
import type { Reserver } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';
import { capitalCase, lowerCase, titleCase, upperCase } from './case.ts';
import { MULTILINE, PREVIEW_ANY, TEXT } from './text-node.ts';
import {
  CHUNK_CHARS,
  chunksOf,
  countChars,
  createTextPieces,
  offsetOf,
  reserveText,
} from './pieces.ts';

type Change = (text: string, context: NodeContext) => string;

const TRIM: { readonly [mode: string]: Change } = {
  Both: (text, context) => trimEnd(trimStart(text, context), context),
  Left: trimStart,
  Right: trimEnd,
};

const CASE: { readonly [mode: string]: Change } = {
  UPPERCASE: upperCase,
  lowercase: lowerCase,
  Capitalize: capitalCase,
  'Title Case': titleCase,
};

const COMPARE: { readonly [mode: string]: (a: string, b: string) => boolean } = {
  'Starts With': (a, b) => a.startsWith(b),
  'Ends With': (a, b) => a.endsWith(b),
  Equal: (a, b) => a === b,
};

/** The nodes that make texts from texts. Characters are code points, as in Python. */
export const TEXT_NODES: readonly NodeDef[] = [
  typedNode({
    ...TEXT,
    name: 'StringConcatenate',
    displayName: 'Concatenate Text',
    required: {
      string_a: MULTILINE,
      string_b: MULTILINE,
      delimiter: ['STRING', { default: '', multiline: false }],
    },
    run({ string_a: a, string_b: b, delimiter }, context) {
      reserveText(context, a.length + delimiter.length + b.length);
      return { outputs: [[a, b].join(delimiter)] };
    },
  }),
  typedNode({
    ...TEXT,
    name: 'StringSubstring',
    displayName: 'Substring',
    required: { string: MULTILINE, start: ['INT', {}], end: ['INT', {}] },
    run({ string, ...bounds }, context) {
      const chars = countChars(string, context);
      // They count as in a Python slice.
      const place = (index: number): number =>
        Math.min(chars, index < 0 ? Math.max(0, chars + index) : index);
      const [start, end] = [place(bounds.start), place(bounds.end)];
      if (start >= end) return { outputs: [''] };
      const from = offsetOf(string, start, context);
      const to = offsetOf(string, end, context);
      reserveText(context, to - from);
      return { outputs: [string.slice(from, to)] };
    },
  }),
  typedNode({
    ...TEXT,
    name: 'StringLength',
    displayName: 'Text Length',
    required: { string: MULTILINE },
    outputs: [{ type: 'INT', name: 'length' }],
    run: ({ string }, context) => ({ outputs: [countChars(string, context)] }),
  }),
  typedNode({
    ...TEXT,
    name: 'CaseConverter',
    displayName: 'Convert Text Case',
    required: { string: MULTILINE, mode: combo(Object.keys(CASE)) },
    run: ({ string, mode }, context) => ({
      outputs: [chosen(mode, CASE)?.(string, context) ?? string],
    }),
  }),
  typedNode({
    ...TEXT,
    name: 'StringTrim',
    displayName: 'Trim Text',
    required: { string: MULTILINE, mode: combo(Object.keys(TRIM)) },
    run: ({ string, mode }, context) => ({
      outputs: [chosen(mode, TRIM)?.(string, context) ?? string],
    }),
  }),
  typedNode({
    ...TEXT,
    name: 'StringReplace',
    displayName: 'Replace Text',
    required: { string: MULTILINE, find: MULTILINE, replace: MULTILINE },
    run: ({ string, find, replace }, context) => ({
      outputs: [
        find === ''
          ? insertAroundAll(string, replace, context)
          : replaceAll(string, { find, replace }, context),
      ],
    }),
  }),
  typedNode({
    ...TEXT,
    name: 'StringContains',
    displayName: 'Contains Text',
    required: {
      string: MULTILINE,
      substring: MULTILINE,
      case_sensitive: ['BOOLEAN', { advanced: true, default: true }],
    },
    outputs: [{ type: 'BOOLEAN', name: 'contains' }],
    run({ string, substring: wanted, case_sensitive: isExact }, context) {
      const [value, find] = isExact ? [string, wanted] : lowered([string, wanted], context);
      return { outputs: [find === '' || createFinder(value, find, context)(0) >= 0] };
    },
  }),
  typedNode({
    ...TEXT,
    name: 'StringCompare',
    displayName: 'Compare Text',
    required: {
      string_a: MULTILINE,
      string_b: MULTILINE,
      mode: combo(Object.keys(COMPARE)),
      case_sensitive: ['BOOLEAN', { advanced: true, default: true }],
    },
    outputs: [{ type: 'BOOLEAN' }],
    run({ string_a: one, string_b: other, mode, case_sensitive: isExact }, context) {
      const [a, b] = isExact ? [one, other] : lowered([one, other], context);
      return { outputs: [chosen(mode, COMPARE)?.(a, b) ?? false] };
    },
  }),
  PREVIEW_ANY,
];

type TextPair = readonly [string, string];

function lowered([one, other]: TextPair, context: NodeContext): TextPair {
  return [lowerCase(one, context), lowerCase(other, context)];
}

/** Returns the entry of the mode. v1 accepts any text as a mode. */
function chosen<T>(mode: string, table: { readonly [mode: string]: T }): T | undefined {
  return Object.hasOwn(table, mode) ? table[mode] : undefined;
}

/**
 * Inserts a text before, between and behind all characters, which is how Python replaces an empty
 * text.
 */
function insertAroundAll(value: string, between: string, context: NodeContext): string {
  const places = countChars(value, context) + 1;
  reserveText(context, value.length + places * between.length);
  const pieces: string[] = [];
  for (const chunk of chunksOf(value, context))
    pieces.push(['', ...Array.from(chunk)].join(between));
  return [...pieces, between].join('');
}

function replaceAll(
  value: string,
  { find, replace }: { readonly find: string; readonly replace: string },
  context: NodeContext,
): string {
  const next = createFinder(value, find, context);
  const pieces = createTextPieces(context);
  let from = 0;
  for (let at = next(0); at >= 0; at = next(from)) {
    pieces.add(value.slice(from, at));
    pieces.add(replace);
    from = at + find.length;
  }
  if (from === 0) return value;
  pieces.add(value.slice(from));
  return pieces.text();
}

function trimStart(value: string, context: NodeContext): string {
  let from = 0;
  while (from < value.length && isWhite(value.charAt(from))) {
    if (++from % CHUNK_CHARS === 0) context.check();
  }
  return trimmed(value, from, value.length, context);
}

function trimEnd(value: string, context: NodeContext): string {
  let to = value.length;
  while (to > 0 && isWhite(value.charAt(to - 1))) {
    if (--to % CHUNK_CHARS === 0) context.check();
  }
  return trimmed(value, 0, to, context);
}

function trimmed(value: string, from: number, to: number, context: NodeContext): string {
  if (to - from === value.length) return value;
  reserveText(context, to - from);
  return value.slice(from, to);
}

/** True for white space. Python also counts the four separators of ASCII. */
function isWhite(char: string): boolean {
  return /\p{White_Space}/u.test(char) || (char >= '\x1c' && char <= '\x1f');
}

type Watched = Reserver & Pick<NodeContext, 'check'>;

/** Returns where a text is found next, at or behind an index; -1: nowhere. */
type Finder = (from: number) => number;

/**
 * Searches for `find` in a text by the algorithm of Knuth, Morris and Pratt, which reads each
 * character of the text at most twice. `String.prototype.indexOf` compares every character of one
 * text with every character of the other when both repeat themselves, and nothing can end it
 * meanwhile.
 * @internal
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

/**
 * Returns, for each beginning of a text, the length of the longest shorter beginning with which it
 * ends.
 */
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
