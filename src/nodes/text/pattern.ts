import { type NodeContext, type NodeDef, NodeFailure, type Value } from '../node.ts';
import { typedNode } from '../typed-node.ts';
import { MULTILINE, TEXT } from './text-node.ts';
import { createTextPieces } from './pieces.ts';
import type { TextMatch } from './regex.ts';
import { type Search, searchText } from './search.ts';

const SWITCHES = {
  case_insensitive: ['BOOLEAN', { default: true }],
  multiline: ['BOOLEAN', { default: false }],
  dotall: ['BOOLEAN', { default: false }],
} as const;

type Mode = {
  readonly most: number;
  /** Returns the text that RegexExtract takes from a match; `undefined`: none. */
  readonly pick: (match: TextMatch, group: number) => Value | undefined;
};

const EXTRACT: { readonly [mode: string]: Mode } = {
  'First Match': { most: 1, pick: ({ groups }) => groups[0] ?? '' },
  'All Matches': {
    most: Infinity,
    pick: ({ groups }) => (groups.length > 1 ? groups[1] : groups[0]) ?? '',
  },
  'First Group': {
    most: 1,
    pick: ({ groups }, group) => (groups.length > group ? (groups[group] ?? null) : ''),
  },
  'All Groups': {
    most: Infinity,
    pick: ({ groups }, group) =>
      groups.length > Math.max(1, group) ? (groups[group] ?? '') : undefined,
  },
};

/** The text nodes that take a Python regular expression. */
export const TEXT_PATTERN_NODES: readonly NodeDef[] = [
  typedNode({
    ...TEXT,
    name: 'RegexMatch',
    displayName: 'Regex Match',
    required: { string: MULTILINE, regex_pattern: MULTILINE, ...SWITCHES },
    outputs: [{ type: 'BOOLEAN', name: 'matches' }],
    run: async (inputs, context) => ({ outputs: [await matches(inputs, context)] }),
  }),
  typedNode({
    ...TEXT,
    name: 'RegexExtract',
    displayName: 'Regex Extract',
    required: {
      string: MULTILINE,
      regex_pattern: MULTILINE,
      mode: ['COMBO', { multiselect: false, options: Object.keys(EXTRACT) }],
      ...SWITCHES,
      group_index: ['INT', { default: 1, min: 0, max: 100 }],
    },
    run: async (inputs, context) => ({ outputs: [await extract(inputs, context)] }),
  }),
  typedNode({
    ...TEXT,
    name: 'RegexReplace',
    displayName: 'Regex Replace',
    description: 'Replaces what a regular expression finds.',
    required: { string: MULTILINE, regex_pattern: MULTILINE, replace: MULTILINE },
    optional: { ...SWITCHES, count: ['INT', { default: 0, min: 0, max: 100 }] },
    run: async (inputs, context) => ({ outputs: [await replaceMatches(inputs, context)] }),
  }),
];

type Pattern = { readonly string: string; readonly regex_pattern: string } & Partial<Switches>;
type Switches = { readonly [name in keyof typeof SWITCHES]: boolean };

async function matches(inputs: Pattern, context: NodeContext): Promise<boolean> {
  const search = searchOf(inputs, { most: 1, wanted: 'whether' });
  for await (const found of findNothingIfWrong(searchText(search, context))) {
    if (found.length > 0) return true;
  }
  return false;
}

/** Extracts. Several matches are joined by newlines. */
async function extract(
  inputs: Pattern & { readonly mode: string; readonly group_index: number },
  context: NodeContext,
): Promise<Value> {
  const mode = EXTRACT[inputs.mode];
  if (!mode) return '';
  const search = searchOf(inputs, { most: mode.most, wanted: 'matches' });
  const pieces = createTextPieces(context);
  let isFirst = true;
  for await (const found of findNothingIfWrong(searchText(search, context))) {
    for (const match of found) {
      const picked = mode.pick(match, inputs.group_index);
      if (mode.most === 1) return picked === undefined ? '' : picked;
      if (typeof picked !== 'string') continue;
      if (!isFirst) pieces.add('\n');
      pieces.add(picked);
      isFirst = false;
    }
  }
  return pieces.text();
}

/** Yields no match for a pattern that does not compile, as v1 does. */
async function* findNothingIfWrong<T>(found: AsyncGenerator<T>): AsyncGenerator<T> {
  try {
    yield* found;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
}

type Replacement = Pattern & { readonly replace: string; readonly count?: number };

async function replaceMatches(inputs: Replacement, context: NodeContext): Promise<string> {
  try {
    return await replaced(inputs, context);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new NodeFailure('re.error', error.message, { cause: error });
  }
}

async function replaced(inputs: Replacement, context: NodeContext): Promise<string> {
  const { count = 0, replace: source } = inputs;
  const search = searchOf(inputs, { most: count > 0 ? count : Infinity, wanted: 'matches' });
  const pieces = createTextPieces(context);
  let template: Template | undefined;
  let at = 0;
  for await (const found of searchText(search, context)) {
    for (const match of found) {
      template ??= parseTemplate(source);
      pieces.add(search.text.slice(at, match.index));
      for (const text of templateTexts(template, match)) pieces.add(text);
      at = match.index + (match.groups[0]?.length ?? 0);
    }
  }
  if (template === undefined) await checkTemplate(parseTemplate(source), search, context);
  pieces.add(search.text.slice(at));
  return pieces.text();
}

/**
 * Checks the replacement. Python reads it before the search, so a group that the pattern lacks is
 * an error even without a match.
 */
async function checkTemplate(
  template: Template,
  { pattern, flags }: Search,
  context: NodeContext,
): Promise<void> {
  if (template.every((part) => 'text' in part)) return;
  // This matches an empty text whatever the pattern is, and has all of its groups.
  const probe: Search = { pattern: `${pattern}|`, flags, text: '', most: 1, wanted: 'matches' };
  for await (const found of searchText(probe, context)) {
    for (const match of found) for (const _ of templateTexts(template, match));
  }
}

function searchOf(
  { string: text, regex_pattern: pattern, ...switches }: Pattern,
  { most, wanted }: Pick<Search, 'most' | 'wanted'>,
): Search {
  const { case_insensitive: caseInsensitive = true, multiline = false, dotall = false } = switches;
  return { pattern, flags: { caseInsensitive, multiline, dotall }, text, most, wanted };
}

/** A part of a replacement: a literal text, or the text of a group. */
type Part = { readonly text: string } | { readonly group: string; readonly position: number };

/**
 * A Python replacement template (`\1`, `\g<name>`, `\n`), read once. A wrong escape throws
 * SyntaxError.
 */
type Template = readonly Part[];

function parseTemplate(template: string): Template {
  const parts: Part[] = [];
  let at = 0;
  for (const token of template.matchAll(/\\(?:g<(\w+)>|([1-9]\d?)|([^]))/g)) {
    const [whole, named, numbered, letter] = token;
    parts.push({ text: template.slice(at, token.index) });
    parts.push(
      letter === undefined
        ? { group: String(named ?? numbered), position: token.index + (named ? 3 : 1) }
        : { text: templateEscape(letter) },
    );
    at = token.index + whole.length;
  }
  return [...parts, { text: template.slice(at) }].filter(
    (part) => !('text' in part) || part.text !== '',
  );
}

/** Yields the replacement texts of a match. Throws SyntaxError for a group that the match lacks. */
function* templateTexts(template: Template, match: TextMatch): Generator<string> {
  for (const part of template) yield 'text' in part ? part.text : groupText(part, match);
}

function groupText(
  { group, position }: Exclude<Part, { readonly text: string }>,
  { groups, named }: TextMatch,
): string {
  const isNumber = /^\d+$/.test(group);
  if (isNumber && Number(group) >= groups.length)
    throw new SyntaxError(`invalid group reference ${group} at position ${position}`);
  if (!isNumber && !Object.hasOwn(named, group))
    throw new NodeFailure('IndexError', `unknown group name '${group}'`);
  return (isNumber ? groups[Number(group)] : named[group]) ?? '';
}

function templateEscape(letter: string): string {
  const known: { readonly [name: string]: string } = {
    n: '\n',
    t: '\t',
    r: '\r',
    '\\': '\\',
    a: '\x07',
    f: '\f',
    v: '\v',
    '0': '\0',
  };
  if (known[letter] !== undefined) return known[letter];
  if (/[a-zA-Z]/.test(letter)) throw new SyntaxError(`bad escape \\${letter}`);
  return `\\${letter}`;
}
