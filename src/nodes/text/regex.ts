import { NodeFailure } from '../node.ts';

/** The flags that v1's regex nodes offer. */
export type RegexFlags = {
  readonly caseInsensitive: boolean;
  readonly multiline: boolean;
  readonly dotall: boolean;
};

/** A Python pattern and its flags, including those at the start of the pattern. */
export type PythonPattern = RegexFlags & { readonly source: string };

/** A match of a pattern. Group 0 is the whole match. */
export type TextMatch = {
  readonly index: number;
  readonly groups: readonly (string | undefined)[];
  readonly named: { readonly [name: string]: string | undefined };
};

/** Finds the matches of one pattern in one text. */
export type RegexEngine = {
  /** Returns the first match at or behind an index. */
  next(from: number): TextMatch | undefined;
};

/** How another engine writes the parts of a Python pattern that differ. */
export type RegexDialect = {
  /** Writes `\d` and similar escapes, by the letter behind the backslash. */
  escape(letter: string): string;
  /** Writes such an escape inside `[…]`. */
  classEscape(letter: string): string;
  /** Writes a literal character inside `[…]`. */
  classChar(char: string): string;
  readonly anchors: { readonly [token in '.' | '^' | '$']: string };
  readonly namedGroup: string;
  namedReference(name: string): string;
};

/** Matches every part of a Python pattern that may have to be rewritten. The rest is copied. */
const TOKEN =
  /(\(\?(?:>|\(|[a-zA-Z-]+[:)])|[*+?]\+|\{\d+(?:,\d*)?\}\+)|\\([^])|\[(\^?)(\]?(?:\\[^]|[^\]\\])*)\]|\(\?P<|\(\?P=(\w+)\)|\(\?#[^)]*\)|\{(\d*)(,?)(\d*)\}|[.^${}\]]/g;

/** Adds the flags at the start of a pattern (`(?i)`) to those that are switched on. */
export function pythonPattern(pattern: string, flags: RegexFlags): PythonPattern {
  const inline = /^\(\?([aimsu]+)\)/.exec(pattern);
  const letters = inline?.[1] ?? '';
  return {
    source: pattern.slice(inline?.[0].length ?? 0),
    dotall: flags.dotall || letters.includes('s'),
    multiline: flags.multiline || letters.includes('m'),
    caseInsensitive: flags.caseInsensitive || letters.includes('i'),
  };
}

/** Returns the pattern as another engine writes it. */
export function translate(source: string, dialect: RegexDialect): string {
  return source.replaceAll(
    TOKEN,
    (token, foreign, escaped, negated, body, backref, low, comma, high) => {
      if (foreign !== undefined) throw unsupported(token);
      if (escaped !== undefined) return dialect.escape(String(escaped));
      if (body !== undefined) return `[${String(negated)}${classBody(String(body), dialect)}]`;
      if (backref !== undefined) return dialect.namedReference(String(backref));
      if (low !== undefined)
        return repetition(token, String(low), `${String(comma)}${String(high)}`);
      if (token.startsWith('(?#')) return '';
      return token === '(?P<' ? dialect.namedGroup : single(token, dialect);
    },
  );
}

/**
 * Returns an escaped literal. Python allows any escaped punctuation, JavaScript only its own
 * syntax.
 */
export function literal(escaped: string): string {
  return /[\w^$\\.*+?()[\]{}|/-]/.test(escaped) && escaped !== '_'
    ? escapedSyntax(escaped)
    : escaped;
}

/**
 * Refuses groups and repetitions that Python has and JavaScript lacks: they must not be read as
 * another pattern.
 */
function unsupported(token: string): NodeFailure {
  return new NodeFailure(
    'NotImplementedError',
    `regular expressions with ${token} are not supported here`,
  );
}

function single(token: string, { anchors }: RegexDialect): string {
  return token === '.' || token === '^' || token === '$' ? anchors[token] : `\\${token}`;
}

/** Returns a repetition. `{,3}` counts from 0; braces without a count are literal. */
function repetition(token: string, low: string, rest: string): string {
  if (low === '' && !/^,\d/.test(rest)) return token.replaceAll(/[{}]/g, '\\$&');
  return `{${low || '0'}${rest}}`;
}

function classBody(body: string, dialect: RegexDialect): string {
  const opened = body.startsWith(']') ? `\\${body}` : body;
  return opened.replaceAll(/\\([^])|[^]/g, (char, letter?: string) =>
    letter === undefined ? dialect.classChar(char) : dialect.classEscape(letter),
  );
}

/**
 * Returns an escaped character. A dash may be escaped inside a class only; its code is allowed
 * anywhere.
 */
function escapedSyntax(char: string): string {
  return char === '-' ? '\\x2d' : `\\${char}`;
}

/** The Python escapes outside a class that JavaScript lacks, or that it limits to ASCII. */
const ESCAPES: { readonly [letter: string]: string } = {
  A: '(?<![^])',
  Z: '(?![^])',
  a: '\\x07',
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  w: '[\\p{L}\\p{N}_]',
  W: '[^\\p{L}\\p{N}_]',
  b: '(?:(?<=[\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_]))',
  B: '(?:(?<=[\\p{L}\\p{N}_])(?=[\\p{L}\\p{N}_])|(?<![\\p{L}\\p{N}_])(?![\\p{L}\\p{N}_]))',
};

/** The same escapes inside `[…]`. */
const CLASS_ESCAPES: { readonly [letter: string]: string } = {
  a: '\\x07',
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  w: '\\p{L}\\p{N}_',
  // All characters except letters, numbers and the underscore, since a class cannot exclude a
  // single character.
  W: '\\p{C}\\p{M}\\p{S}\\p{Z}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f',
};

/**
 * Returns JavaScript's own engine, which backtracks: fast for most patterns, too slow for some.
 * Throws SyntaxError for a wrong pattern.
 */
export function backtrackingEngine(pattern: PythonPattern, text: string): RegexEngine {
  const regex = regexOf(pattern);
  return {
    next(from) {
      regex.lastIndex = from;
      const match = regex.exec(text);
      return match ? { index: match.index, groups: match, named: match.groups ?? {} } : undefined;
    },
  };
}

function regexOf({ source, caseInsensitive, dotall, multiline }: PythonPattern): RegExp {
  const flags = `gu${caseInsensitive ? 'i' : ''}${dotall ? 's' : ''}`;
  return new RegExp(translate(source, dialectOf({ dotall, multiline })), flags);
}

/**
 * Returns how JavaScript writes the pattern. Python's only line end is `\n`, and its `$` also
 * matches before a last one.
 */
function dialectOf({
  dotall,
  multiline,
}: Pick<PythonPattern, 'dotall' | 'multiline'>): RegexDialect {
  return {
    escape: (letter) => ESCAPES[letter] ?? literal(letter),
    classEscape: (letter) => CLASS_ESCAPES[letter] ?? literal(letter),
    classChar: (char) => char,
    anchors: {
      '.': dotall ? '.' : '[^\\n]',
      '^': multiline ? '(?<![^\\n])' : '^',
      $: multiline ? '(?![^\\n])' : '(?=\\n?(?![^]))',
    },
    namedGroup: '(?<',
    namedReference: (name) => `\\k<${name}>`,
  };
}
