import type { Inputs, NodeDef } from './node.ts';
import { boolInput, intInput, stringInput } from './tensor.ts';
import { MULTILINE, stringNode } from './text-node.ts';
import { TEXT_PATTERN_NODES } from './text-pattern.ts';
import { PREVIEW_ANY } from './text-preview.ts';

type Change = (text: string) => string;

const TRIM: { readonly [mode: string]: Change } = {
  Both: (text) => trimEnd(trimStart(text)),
  Left: trimStart,
  Right: trimEnd,
};

const CASE: { readonly [mode: string]: Change } = {
  UPPERCASE: (text) => text.toUpperCase(),
  lowercase: (text) => text.toLowerCase(),
  Capitalize: capitalised,
  'Title Case': (text) => text.replaceAll(/\p{Cased}+/gu, capitalised),
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
    output: { type: 'STRING' },
    evaluate: (inputs) =>
      [text(inputs, 'string_a'), text(inputs, 'string_b')].join(text(inputs, 'delimiter')),
  }),
  stringNode({
    name: 'StringSubstring',
    displayName: 'Substring',
    required: { string: MULTILINE, start: ['INT', {}], end: ['INT', {}] },
    output: { type: 'STRING' },
    evaluate: (inputs) =>
      Array.from(text(inputs, 'string'))
        .slice(intInput(inputs, 'start'), intInput(inputs, 'end'))
        .join(''),
  }),
  stringNode({
    name: 'StringLength',
    displayName: 'Length',
    required: { string: MULTILINE },
    output: { type: 'INT', name: 'length' },
    evaluate: (inputs) => Array.from(text(inputs, 'string')).length,
  }),
  stringNode({
    name: 'CaseConverter',
    displayName: 'Case Converter',
    required: { string: MULTILINE, mode: options(CASE) },
    output: { type: 'STRING' },
    evaluate: (inputs) => changed(inputs, CASE),
  }),
  stringNode({
    name: 'StringTrim',
    displayName: 'Trim',
    required: { string: MULTILINE, mode: options(TRIM) },
    output: { type: 'STRING' },
    evaluate: (inputs) => changed(inputs, TRIM),
  }),
  stringNode({
    name: 'StringReplace',
    displayName: 'Replace',
    required: { string: MULTILINE, find: MULTILINE, replace: MULTILINE },
    output: { type: 'STRING' },
    evaluate: (inputs) => replaced(inputs),
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
    evaluate: (inputs) => cased(inputs, 'string').includes(cased(inputs, 'substring')),
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
    evaluate: (inputs) =>
      COMPARE[text(inputs, 'mode')]?.(cased(inputs, 'string_a'), cased(inputs, 'string_b')) ??
      false,
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
function cased(inputs: Inputs, name: string): string {
  const value = text(inputs, name);
  return boolInput(inputs, 'case_sensitive') ? value : value.toLowerCase();
}

function changed(inputs: Inputs, table: { readonly [mode: string]: Change }): string {
  const value = text(inputs, 'string');
  return table[text(inputs, 'mode')]?.(value) ?? value;
}

/** Nothing is found before, between and after all characters. */
function replaced(inputs: Inputs): string {
  const [value, find, replace] = [
    text(inputs, 'string'),
    text(inputs, 'find'),
    text(inputs, 'replace'),
  ];
  return find === ''
    ? ['', ...Array.from(value), ''].join(replace)
    : value.replaceAll(find, () => replace);
}

function capitalised(value: string): string {
  const [first = '', ...rest] = value;
  return first.toUpperCase() + rest.join('').toLowerCase();
}

function trimStart(value: string): string {
  let from = 0;
  while (from < value.length && isWhite(value.charAt(from))) from++;
  return value.slice(from);
}

function trimEnd(value: string): string {
  let to = value.length;
  while (to > 0 && isWhite(value.charAt(to - 1))) to--;
  return value.slice(0, to);
}

/** Python also counts the four separators of ASCII as white space. */
function isWhite(char: string): boolean {
  return /\p{White_Space}/u.test(char) || (char >= '\x1c' && char <= '\x1f');
}
