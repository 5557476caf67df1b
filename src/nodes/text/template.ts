import type { TextMatch } from './regex.ts';

/** A piece of a replacement: a literal text, or the text of a group. */
type Part = { readonly text: string } | { readonly group: string };

/** A Python replacement template (`\1`, `\g<name>`, `\n`), read once; throws SyntaxError for a wrong escape. */
export type Template = readonly Part[];

export function parseTemplate(template: string): Template {
  const parts: Part[] = [];
  let at = 0;
  for (const token of template.matchAll(/\\(?:g<(\w+)>|([1-9]\d?)|([^]))/g)) {
    const [whole, named, numbered, letter] = token;
    parts.push({ text: template.slice(at, token.index) });
    parts.push(
      letter === undefined
        ? { group: String(named ?? numbered) }
        : { text: templateEscape(letter) },
    );
    at = token.index + whole.length;
  }
  return [...parts, { text: template.slice(at) }].filter(
    (part) => !('text' in part) || part.text !== '',
  );
}

/** The replacement texts of a match; throws SyntaxError for a group that it does not have. */
export function* templateTexts(template: Template, match: TextMatch): Generator<string> {
  for (const part of template) yield 'text' in part ? part.text : groupText(part.group, match);
}

function groupText(group: string, { groups, named }: TextMatch): string {
  const isNumber = /^\d+$/.test(group);
  const isKnown = isNumber ? Number(group) < groups.length : group in named;
  if (!isKnown) throw new SyntaxError(`invalid group reference ${group}`);
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
