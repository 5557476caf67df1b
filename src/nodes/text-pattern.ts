import { NodeFailure } from './node.ts';
import type { Inputs, NodeDef, Value } from './node.ts';
import { boolInput, intInput, optionalInput, stringInput } from './tensor.ts';
import { MULTILINE, stringNode } from './text-node.ts';
import { fillTemplate, pythonRegex, type RegexFlags } from './text-regex.ts';

const SWITCHES = {
  case_insensitive: ['BOOLEAN', { default: true }],
  multiline: ['BOOLEAN', { default: false }],
  dotall: ['BOOLEAN', { default: false }],
} as const;

const DEFAULT_FLAGS: RegexFlags = { caseInsensitive: true, multiline: false, dotall: false };

type Matches = readonly RegExpExecArray[];

/** What each mode of RegexExtract takes from the matches, several joined by newlines. */
const EXTRACT: { readonly [mode: string]: (matches: Matches, group: number) => Value } = {
  'First Match': (matches) => matches[0]?.[0] ?? '',
  'All Matches': (matches) =>
    matches.map((match) => (match.length > 1 ? match[1] : match[0]) ?? '').join('\n'),
  'First Group': ([match], group) => (match && match.length > group ? (match[group] ?? null) : ''),
  'All Groups': (matches, group) =>
    matches
      .filter((match) => match.length > Math.max(1, group))
      .map((match) => match[group] ?? '')
      .join('\n'),
};

/** The text nodes that take a Python regular expression. */
export const TEXT_PATTERN_NODES: readonly NodeDef[] = [
  stringNode({
    name: 'RegexMatch',
    displayName: 'Regex Match',
    required: { string: MULTILINE, regex_pattern: MULTILINE, ...SWITCHES },
    output: { type: 'BOOLEAN', name: 'matches' },
    evaluate: (inputs) => (tryMatches(inputs) ?? []).length > 0,
  }),
  stringNode({
    name: 'RegexExtract',
    displayName: 'Regex Extract',
    required: {
      string: MULTILINE,
      regex_pattern: MULTILINE,
      mode: ['COMBO', { multiselect: false, options: Object.keys(EXTRACT) }],
      ...SWITCHES,
      group_index: ['INT', { default: 1, min: 0, max: 100 }],
    },
    output: { type: 'STRING' },
    evaluate: (inputs) => {
      const extract = EXTRACT[stringInput(inputs, 'mode')];
      return extract ? extract(tryMatches(inputs) ?? [], intInput(inputs, 'group_index')) : '';
    },
  }),
  stringNode({
    name: 'RegexReplace',
    displayName: 'Regex Replace',
    description: 'Replaces what a regular expression finds.',
    required: { string: MULTILINE, regex_pattern: MULTILINE, replace: MULTILINE },
    optional: { ...SWITCHES, count: ['INT', { default: 0, min: 0, max: 100 }] },
    output: { type: 'STRING' },
    evaluate: replaceMatches,
  }),
];

/** v1 counts a pattern that does not compile as one that finds nothing. */
function tryMatches(inputs: Inputs): Matches | undefined {
  try {
    return findMatches(inputs);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function findMatches(inputs: Inputs): Matches {
  const regex = pythonRegex(stringInput(inputs, 'regex_pattern'), flagsOf(inputs));
  return [...stringInput(inputs, 'string').matchAll(regex)];
}

function replaceMatches(inputs: Inputs): string {
  try {
    return replaced(inputs);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new NodeFailure('re.error', error.message, { cause: error });
  }
}

function replaced(inputs: Inputs): string {
  const text = stringInput(inputs, 'string');
  const template = stringInput(inputs, 'replace');
  const count = optionalInput(inputs, 'count', intInput) ?? 0;
  const matches = findMatches(inputs).slice(0, count > 0 ? count : undefined);
  const pieces: string[] = [];
  let at = 0;
  for (const match of matches) {
    pieces.push(text.slice(at, match.index), fillTemplate(template, match));
    at = match.index + match[0].length;
  }
  return [...pieces, text.slice(at)].join('');
}

function flagsOf(inputs: Inputs): RegexFlags {
  return {
    caseInsensitive:
      optionalInput(inputs, 'case_insensitive', boolInput) ?? DEFAULT_FLAGS.caseInsensitive,
    multiline: optionalInput(inputs, 'multiline', boolInput) ?? DEFAULT_FLAGS.multiline,
    dotall: optionalInput(inputs, 'dotall', boolInput) ?? DEFAULT_FLAGS.dotall,
  };
}
