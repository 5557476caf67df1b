// Names and sentences use the field's words, and a comment is a plain sentence or a noun phrase.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const FOLDERS = ['src', 'test', 'docs', 'page'];
const TEXT = /\.(tsx?|mts|mjs|js|py|md|html)$/;

/** Metaphors and vague words that the project once used. */
const OLD_WORDS = new Set([
  'ailing',
  'census',
  'errand',
  'errands',
  'everybody',
  'fate',
  'fates',
  'foundling',
  'foundlings',
  'heal',
  'healed',
  'house',
  'houses',
  'linger',
  'lingers',
  'mint',
  'minted',
  'nobody',
  'overhear',
  'overheard',
  'pursuit',
  'rehearsal',
  'rehearse',
  'rehearsed',
  'respell',
  'seat',
  'seats',
  'somebody',
  'turnstile',
  'twin',
  'twins',
  'upkeep',
  'whoever',
]);

/** Where an old word is stored, sent to clients or printed, or names a row of the published differences. */
const ALLOWED: readonly { readonly path: RegExp; readonly words: readonly string[] }[] = [
  { path: /^test\/words\.test\.ts$/, words: [...OLD_WORDS] },
  { path: /^src\/config\/(flags|worker)\.ts$/, words: ['rehearse', 'nobody'] },
  { path: /^src\/definitions\/remote-definitions\.ts$/, words: ['everybody'] },
  { path: /^src\/migration\/deprecation\.ts$/, words: ['rehearsed'] },
  { path: /^src\/migration\/usage-report-text\.ts$/, words: ['nobody'] },
  { path: /^src\/prompts\/submit\/send\.ts$/, words: ['healed'] },
  { path: /^src\/translate\/notification-texts\.ts$/, words: ['rehearsed'] },
  { path: /^src\/upstreams\/distributed-state\/redis-keys\.ts$/, words: ['upkeep'] },
  { path: /^src\/upstreams\/passthrough\/failures\.ts$/, words: ['nobody'] },
  // The sentence of the v2 document.
  { path: /^src\/v2\/asset-handlers\.ts$/, words: ['minted'] },
  { path: /^src\/v1\/userdata\/users\.ts$/, words: ['whoever'] },
  { path: /^docs\/(settings|differences)\.md$/, words: ['rehearse', 'twin'] },
  { path: /^test\/support\/golden\//, words: ['twin'] },
];

const CODE_FOLDERS = ['src', 'test', 'page'];
const CODE = /\.(tsx?|mjs|js)$/;
const COMMENT = /^\s*(?:\/\/|\/?\*+)\s*(.*)$/;
/** A sentence with one of these openings has no subject, unless it is a question. */
const BARE_OPENING = /^(?:What|Whoever|Whether|Who)\b(?!.*\?)/;

function filesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return TEXT.test(path) ? [path] : [];
  });
}

/** `file:line word` of each old word, in prose and in parts of names. */
function oldWordsIn(path: string): string[] {
  const allowed = new Set(ALLOWED.filter((one) => one.path.test(path)).flatMap((one) => one.words));
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, at) =>
      wordsOf(line)
        .filter((word) => OLD_WORDS.has(word) && !allowed.has(word))
        .map((word) => `${path}:${at + 1} ${word}`),
    );
}

function wordsOf(line: string): string[] {
  const words = line.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  return words.map((word) => word.toLowerCase());
}

/** `file:line sentence` of each sentence of a comment that has a bare opening. */
function bareOpeningsIn(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line, at) =>
      sentencesOf(line)
        .filter((sentence) => BARE_OPENING.test(sentence))
        .map((sentence) => `${path}:${at + 1} ${sentence}`),
    );
}

/** The sentences of a comment line; none of a line of code. */
function sentencesOf(line: string): string[] {
  return COMMENT.exec(line)?.[1]?.split(/(?<=[.!?]) /) ?? [];
}

test('the tree has none of the old words', () => {
  const paths = [...FOLDERS.flatMap(filesIn), 'README.md'];
  expect(paths.flatMap(oldWordsIn)).toEqual([]);
});

test.each([
  ['// What the server does.', ['What the server does.']],
  ['  /** Whether it is dead. */', ['Whether it is dead.']],
  [' * Ends it. Who waits is told.', ['Who waits is told.']],
  ['// Who is it? It is the user.', []],
  ['// It reads what the server does, and who did it.', []],
  ["const title = 'What the server does';", []],
])('of %j the bare openings are %j', (line, expected) => {
  expect(sentencesOf(line).filter((sentence) => BARE_OPENING.test(sentence))).toEqual(expected);
});

test('no sentence of a comment begins with a bare What, Who, Whoever or Whether', () => {
  const paths = CODE_FOLDERS.flatMap(filesIn).filter((path) => CODE.test(path));
  expect(paths.flatMap(bareOpeningsIn)).toEqual([]);
});
