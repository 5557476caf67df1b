import { type Dialect, type Engine, type PythonPattern, literal, translate } from './regex.ts';

/** A Python escape outside a class that JavaScript lacks, or that means ASCII only there. */
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

/** The same inside `[…]`. */
const CLASS_ESCAPES: { readonly [letter: string]: string } = {
  a: '\\x07',
  d: '\\p{Nd}',
  D: '\\P{Nd}',
  w: '\\p{L}\\p{N}_',
  // All characters except letters, numbers and the underscore; a class has no way to exclude one
  // character.
  W: '\\p{C}\\p{M}\\p{S}\\p{Z}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f',
};

/**
 * The pattern for JavaScript's own engine, which backtracks: fast for most patterns, for some it
 * takes too long to wait. Throws SyntaxError for a wrong pattern.
 */
export function backtrackingEngine(pattern: PythonPattern, text: string): Engine {
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

/** Python's only line end is `\n`; its `$` also matches before a last one. */
function dialectOf({ dotall, multiline }: Pick<PythonPattern, 'dotall' | 'multiline'>): Dialect {
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
