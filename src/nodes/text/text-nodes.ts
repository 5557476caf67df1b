import { type NodeContext, type NodeDef, fail } from '../node.ts';
import { combo, typedNode } from '../typed-node.ts';
import { MULTILINE, PREVIEW_ANY, TEXT } from './text-node.ts';
import { countChars, createTextPieces, offsetOf, reserveText } from './pieces.ts';

// v1 accepts any text as a mode.
const TRIM = new Map<string, (text: string) => string>([
  ['Both', (text) => trimEnd(trimStart(text))],
  ['Left', trimStart],
  ['Right', trimEnd],
]);
/** The most characters that one becomes in the other case. */
const CASED_CHARS = 3;
const CASE = new Map<string, (text: string) => string>([
  ['UPPERCASE', (text) => text.toUpperCase()],
  ['lowercase', (text) => text.toLowerCase()],
  ['Capitalize', capitalised],
  ['Title Case', (text) => text.replaceAll(/\p{Cased}+/gu, capitalised)],
]);
const COMPARE = new Map<string, (a: string, b: string) => boolean>([
  ['Starts With', (a, b) => a.startsWith(b)],
  ['Ends With', (a, b) => a.endsWith(b)],
  ['Equal', (a, b) => a === b],
]);

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
      const chars = countChars(string);
      // They count as in a Python slice.
      const place = (index: number): number =>
        Math.min(chars, index < 0 ? Math.max(0, chars + index) : index);
      const [start, end] = [place(bounds.start), place(bounds.end)];
      if (start >= end) return { outputs: [''] };
      const from = offsetOf(string, start);
      const to = offsetOf(string, end);
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
    run: ({ string }) => ({ outputs: [countChars(string)] }),
  }),
  typedNode({
    ...TEXT,
    name: 'CaseConverter',
    displayName: 'Convert Text Case',
    required: { string: MULTILINE, mode: combo([...CASE.keys()]) },
    run({ string, mode }, context) {
      reserveText(context, string.length * CASED_CHARS);
      return { outputs: [CASE.get(mode)?.(string) ?? string] };
    },
  }),
  typedNode({
    ...TEXT,
    name: 'StringTrim',
    displayName: 'Trim Text',
    required: { string: MULTILINE, mode: combo([...TRIM.keys()]) },
    run: ({ string, mode }) => ({ outputs: [TRIM.get(mode)?.(string) ?? string] }),
  }),
  typedNode({
    ...TEXT,
    name: 'StringReplace',
    displayName: 'Replace Text',
    required: { string: MULTILINE, find: MULTILINE, replace: MULTILINE },
    run: ({ string, ...words }, context) => ({ outputs: [replaceAll(string, words, context)] }),
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
      requireSearchable(value, find);
      return { outputs: [value.includes(find)] };
    },
  }),
  typedNode({
    ...TEXT,
    name: 'StringCompare',
    displayName: 'Compare Text',
    required: {
      string_a: MULTILINE,
      string_b: MULTILINE,
      mode: combo([...COMPARE.keys()]),
      case_sensitive: ['BOOLEAN', { advanced: true, default: true }],
    },
    outputs: [{ type: 'BOOLEAN' }],
    run({ string_a: one, string_b: other, mode, case_sensitive: isExact }, context) {
      const [a, b] = isExact ? [one, other] : lowered([one, other], context);
      return { outputs: [COMPARE.get(mode)?.(a, b) ?? false] };
    },
  }),
  PREVIEW_ANY,
];

type TextPair = readonly [string, string];

function lowered([one, other]: TextPair, context: NodeContext): TextPair {
  reserveText(context, (one.length + other.length) * CASED_CHARS);
  return [one.toLowerCase(), other.toLowerCase()];
}

/** Returns the text with its first character in upper case and all others in lower case. */
function capitalised(text: string): string {
  const [first = ''] = text;
  const [head = '', ...tail] = first.toUpperCase();
  // The whole is lowered: a sigma at the end depends on what is before it.
  const rest = text.toLowerCase().slice(first.toLowerCase().length);
  return head + tail.join('').toLowerCase() + rest;
}

/** Replaces a text. An empty one is before, between and behind all characters, as in Python. */
function replaceAll(
  value: string,
  { find, replace }: { readonly find: string; readonly replace: string },
  context: NodeContext,
): string {
  const pieces = createTextPieces(context);
  if (find === '') {
    for (const char of value) pieces.add(replace + char);
    pieces.add(replace);
    return pieces.text();
  }
  requireSearchable(value, find);
  let from = 0;
  for (let at = value.indexOf(find); at >= 0; at = value.indexOf(find, from)) {
    pieces.add(value.slice(from, at) + replace);
    from = at + find.length;
  }
  if (from === 0) return value;
  pieces.add(value.slice(from));
  return pieces.text();
}

/** True for white space. Python also counts the four separators of ASCII. */
const isWhite = (char: string): boolean =>
  /\p{White_Space}/u.test(char) || (char >= '\x1c' && char <= '\x1f');

function trimStart(value: string): string {
  let from = 0;
  while (isWhite(value.charAt(from))) from++;
  return value.slice(from);
}

function trimEnd(value: string): string {
  let to = value.length;
  while (isWhite(value.charAt(to - 1))) to--;
  return value.slice(0, to);
}

/** Some seconds of work. Nothing can end a search of V8, which compares so often when both texts repeat themselves. */
const MAX_COMPARISONS = 1e10;

function requireSearchable(text: string, find: string): void {
  if (text.length * find.length <= MAX_COMPARISONS) return;
  const message = `A text of ${find.length} characters is too long to be looked for in ${text.length} characters`;
  return fail('ValueError', message);
}
