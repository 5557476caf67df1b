import { NodeFailure } from './node.ts';

/** The switches v1's regex nodes offer. */
export type RegexFlags = {
  readonly caseInsensitive: boolean;
  readonly multiline: boolean;
  readonly dotall: boolean;
};

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
  // All that is no letter, number or underscore; a class has no way to leave one character out.
  W: '\\p{C}\\p{M}\\p{S}\\p{Z}\\p{Pd}\\p{Ps}\\p{Pe}\\p{Pi}\\p{Pf}\\p{Po}\u203f\u2040\u2054\ufe33\ufe34\ufe4d-\ufe4f\uff3f',
};

/** Everything in a Python pattern that may need another spelling; the rest is copied. */
const TOKEN =
  /(\(\?(?:>|\(|[a-zA-Z-]+[:)])|[*+?]\+|\{\d+(?:,\d*)?\}\+)|\\([^])|\[(\^?)(\]?(?:\\[^]|[^\]\\])*)\]|\(\?P<|\(\?P=(\w+)\)|\(\?#[^)]*\)|\{(\d*)(,?)(\d*)\}|[.^${}\]]/g;

/** Turns a Python pattern into a global RegExp; throws SyntaxError for a wrong one. */
export function pythonRegex(pattern: string, flags: RegexFlags): RegExp {
  const inline = /^\(\?([aimsu]+)\)/.exec(pattern);
  const letters = inline?.[1] ?? '';
  const dotall = flags.dotall || letters.includes('s');
  const multiline = flags.multiline || letters.includes('m');
  const caseInsensitive = flags.caseInsensitive || letters.includes('i');
  const source = pattern.slice(inline?.[0].length ?? 0);
  const own = `gu${caseInsensitive ? 'i' : ''}${dotall ? 's' : ''}`;
  return new RegExp(translate(source, { dotall, multiline }), own);
}

/** Fills a Python replacement template (`\1`, `\g<name>`, `\n`) from one match. */
export function fillTemplate(template: string, match: RegExpExecArray): string {
  return template.replaceAll(/\\(?:g<(\w+)>|([1-9]\d?)|([^]))/g, (_, named, numbered, letter) => {
    if (letter !== undefined) return templateEscape(String(letter));
    const group = String(named ?? numbered);
    const known = /^\d+$/.test(group)
      ? Number(group) < match.length
      : group in (match.groups ?? {});
    if (!known) throw new SyntaxError(`invalid group reference ${group}`);
    return (/^\d+$/.test(group) ? match[Number(group)] : match.groups?.[group]) ?? '';
  });
}

type Modes = { readonly dotall: boolean; readonly multiline: boolean };

function translate(source: string, modes: Modes): string {
  return source.replaceAll(
    TOKEN,
    (token, foreign, escaped, negated, body, backref, low, comma, high) => {
      if (foreign !== undefined) throw unsupported(token);
      if (escaped !== undefined) return ESCAPES[String(escaped)] ?? literal(String(escaped));
      if (body !== undefined) return `[${String(negated)}${classBody(String(body))}]`;
      if (backref !== undefined) return `\\k<${String(backref)}>`;
      if (low !== undefined)
        return repetition(token, String(low), `${String(comma)}${String(high)}`);
      if (token.startsWith('(?#')) return '';
      return token === '(?P<' ? '(?<' : single(token, modes);
    },
  );
}

/** Groups and repetitions Python has and JavaScript has not: refused, never taken for another pattern. */
function unsupported(token: string): NodeFailure {
  return new NodeFailure(
    'NotImplementedError',
    `regular expressions with ${token} are not supported here`,
  );
}

/** Python knows no line end but `\n`; its `$` also stands before a last one. */
function single(token: string, { dotall, multiline }: Modes): string {
  if (token === '.') return dotall ? '.' : '[^\\n]';
  if (token === '^') return multiline ? '(?<![^\\n])' : '^';
  if (token === '$') return multiline ? '(?![^\\n])' : '(?=\\n?(?![^]))';
  return `\\${token}`;
}

/** `{,3}` counts from 0; braces that are no count stand for themselves. */
function repetition(token: string, low: string, rest: string): string {
  if (low === '' && !/^,\d/.test(rest)) return token.replaceAll(/[{}]/g, '\\$&');
  return `{${low || '0'}${rest}}`;
}

function classBody(body: string): string {
  const opened = body.startsWith(']') ? `\\${body}` : body;
  return opened.replaceAll(
    /\\([^])/g,
    (_, letter: string) => CLASS_ESCAPES[letter] ?? literal(letter),
  );
}

/** Python lets any punctuation be escaped, JavaScript only its own syntax. */
function literal(escaped: string): string {
  return /[\w^$\\.*+?()[\]{}|/-]/.test(escaped) && escaped !== '_'
    ? escapedSyntax(escaped)
    : escaped;
}

/** A dash may be escaped within a class only; its code may be anywhere. */
function escapedSyntax(char: string): string {
  return char === '-' ? '\\x2d' : `\\${char}`;
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
