import type { Inputs, NodeContext, NodeDef } from '../node.ts';
import { boolInput, intInput, stringInput, type Reserver } from '../tensor.ts';
import { capitalCase, lowerCase, titleCase, upperCase } from './case.ts';
import { MULTILINE, stringNode, PREVIEW_ANY } from './text-node.ts';
import { TEXT_PATTERN_NODES } from './pattern.ts';
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

/** The nodes that make text of text; characters are code points, as in Python. */
export const TEXT_NODES: readonly NodeDef[] = [
  stringNode({
    name: 'StringConcatenate',
    displayName: 'Concatenate',
    required: {
      string_a: MULTILINE,
      string_b: MULTILINE,
      delimiter: ['STRING', { default: '', multiline: false }],
    },
    evaluate: concatenated,
  }),
  stringNode({
    name: 'StringSubstring',
    displayName: 'Substring',
    required: { string: MULTILINE, start: ['INT', {}], end: ['INT', {}] },
    evaluate: substring,
  }),
  stringNode({
    name: 'StringLength',
    displayName: 'Length',
    required: { string: MULTILINE },
    output: { type: 'INT', name: 'length' },
    evaluate: (inputs, context) => countChars(text(inputs, 'string'), context),
  }),
  stringNode({
    name: 'CaseConverter',
    displayName: 'Case Converter',
    required: { string: MULTILINE, mode: options(CASE) },
    evaluate: (inputs, context) => changed(inputs, CASE, context),
  }),
  stringNode({
    name: 'StringTrim',
    displayName: 'Trim',
    required: { string: MULTILINE, mode: options(TRIM) },
    evaluate: (inputs, context) => changed(inputs, TRIM, context),
  }),
  stringNode({
    name: 'StringReplace',
    displayName: 'Replace',
    required: { string: MULTILINE, find: MULTILINE, replace: MULTILINE },
    evaluate: replaced,
  }),
  stringNode({
    name: 'StringContains',
    displayName: 'Contains',
    required: {
      string: MULTILINE,
      substring: MULTILINE,
      case_sensitive: ['BOOLEAN', { default: true }],
    },
    output: { type: 'BOOLEAN', name: 'contains' },
    evaluate: (inputs, context) => {
      const [value, find] = [cased(inputs, 'string', context), cased(inputs, 'substring', context)];
      return find === '' || createFinder(value, find, context)(0) >= 0;
    },
  }),
  stringNode({
    name: 'StringCompare',
    displayName: 'Compare',
    required: {
      string_a: MULTILINE,
      string_b: MULTILINE,
      mode: options(COMPARE),
      case_sensitive: ['BOOLEAN', { default: true }],
    },
    output: { type: 'BOOLEAN' },
    evaluate: (inputs, context) => {
      const [a, b] = [cased(inputs, 'string_a', context), cased(inputs, 'string_b', context)];
      return chosen(inputs, COMPARE)?.(a, b) ?? false;
    },
  }),
  ...TEXT_PATTERN_NODES,
  PREVIEW_ANY,
];

function options(table: { readonly [mode: string]: unknown }) {
  return ['COMBO', { multiselect: false, options: Object.keys(table) }] as const;
}

function text(inputs: Inputs, name: string): string {
  return stringInput(inputs, name);
}

/** The text of that name, lower-cased unless case matters. */
function cased(inputs: Inputs, name: string, context: NodeContext): string {
  const value = text(inputs, name);
  return boolInput(inputs, 'case_sensitive') ? value : lowerCase(value, context);
}

function changed(
  inputs: Inputs,
  table: { readonly [mode: string]: Change },
  context: NodeContext,
): string {
  const value = text(inputs, 'string');
  return chosen(inputs, table)?.(value, context) ?? value;
}

/** The entry of the mode; v1 takes any text for one. */
function chosen<T>(inputs: Inputs, table: { readonly [mode: string]: T }): T | undefined {
  const mode = text(inputs, 'mode');
  return Object.hasOwn(table, mode) ? table[mode] : undefined;
}

function concatenated(inputs: Inputs, context: NodeContext): string {
  const [a, b] = [text(inputs, 'string_a'), text(inputs, 'string_b')];
  const delimiter = text(inputs, 'delimiter');
  reserveText(context, a.length + delimiter.length + b.length);
  return [a, b].join(delimiter);
}

/** `start` and `end` count as in a Python slice. */
function substring(inputs: Inputs, context: NodeContext): string {
  const value = text(inputs, 'string');
  const chars = countChars(value, context);
  const [start, end] = ['start', 'end'].map((name) => {
    const index = intInput(inputs, name);
    return Math.min(chars, index < 0 ? Math.max(0, chars + index) : index);
  }) as [number, number];
  if (start >= end) return '';
  const from = offsetOf(value, start, context);
  const to = offsetOf(value, end, context);
  reserveText(context, to - from);
  return value.slice(from, to);
}

function replaced(inputs: Inputs, context: NodeContext): string {
  const [value, find, replace] = [
    text(inputs, 'string'),
    text(inputs, 'find'),
    text(inputs, 'replace'),
  ];
  return find === ''
    ? spread(value, replace, context)
    : replaceAll(value, { find, replace }, context);
}

/** Nothing is found before, between and after all characters. */
function spread(value: string, between: string, context: NodeContext): string {
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
  let count = 0;
  for (let at = next(0); at >= 0; at = next(at + find.length)) count++;
  if (count === 0) return value;
  reserveText(context, value.length + count * (replace.length - find.length));
  const pieces = createTextPieces(UNCOUNTED);
  let from = 0;
  for (let at = next(0); at >= 0; at = next(from)) {
    pieces.add(value.slice(from, at));
    pieces.add(replace);
    from = at + find.length;
  }
  pieces.add(value.slice(from));
  return pieces.text();
}

/** For a text that is paid for already. */
const UNCOUNTED = { reserve: (): void => {} };

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

/** Python also counts the four separators of ASCII as white space. */
function isWhite(char: string): boolean {
  return /\p{White_Space}/u.test(char) || (char >= '\x1c' && char <= '\x1f');
}

type Watched = Reserver & Pick<NodeContext, 'check'>;

/** Answers where a text stands next, at or behind a place; -1: nowhere. */
type Finder = (from: number) => number;

/**
 * Looks for `find` in a text by the way of Knuth, Morris and Pratt: each character of the text is looked
 * at twice at most. `String.prototype.indexOf` compares every character of the one with every character
 * of the other where both repeat themselves, and nothing can end it meanwhile.
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
