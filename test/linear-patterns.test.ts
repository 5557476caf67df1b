// A regular expression in src may meet any text of a caller, so it takes time in proportion to its length.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAst } from 'rolldown/parseAst';
import { analyse } from 'scslre';
import { afterAll, expect, test, vi } from 'vitest';

const SRC = fileURLToPath(new URL('../src', import.meta.url));
const FILES = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

/** Files that build an expression from what they get, and why that needs no check here. */
const BUILT_LATE: Readonly<Record<string, string>> = {};

type Pattern = { readonly file: string; readonly source: string; readonly flags: string };

type Node = { readonly type?: string; readonly [member: string]: unknown };

function nodesIn(value: unknown, nodes: Node[] = []): Node[] {
  if (value === null || typeof value !== 'object') return nodes;
  if (!Array.isArray(value)) nodes.push(value as Node);
  for (const below of Object.values(value)) nodesIn(below, nodes);
  return nodes;
}

const NODES = FILES.map((file) => {
  const program = parseAst(readFileSync(join(SRC, file), 'utf8'), { lang: 'ts' });
  return { file, nodes: nodesIn(program) };
});

function literalsOf({ file, nodes }: (typeof NODES)[number]): Pattern[] {
  return nodes.flatMap(({ type, regex }) => {
    if (type !== 'Literal' || regex === undefined) return [];
    const { pattern, flags } = regex as { readonly pattern: string; readonly flags: string };
    return [{ file, source: pattern, flags }];
  });
}

const buildsPattern = ({ type, callee }: Node): boolean =>
  (type === 'NewExpression' || type === 'CallExpression') && (callee as Node)['name'] === 'RegExp';

/** The expressions that files put together while they are loaded. */
async function builtPatterns(): Promise<Pattern[]> {
  const found: Pattern[] = [];
  vi.resetModules();
  vi.stubGlobal(
    'RegExp',
    class extends RegExp {
      constructor(source: string, flags = '') {
        super(source, flags);
        const { stack } = new Error('where');
        const file = FILES.find((name) => stack?.includes(join(SRC, name)));
        if (file) found.push({ file, source: this.source, flags });
      }
    },
  );
  for (const { file, nodes } of NODES) if (nodes.some(buildsPattern)) await import(join(SRC, file));
  return found;
}
afterAll(() => void vi.unstubAllGlobals());

const KINDS = { Move: true, Self: true, Trade: true } as const;

/** True for an expression that is tried at many places and passes over the rest of the text at each. */
function passesOftenOver({ source, flags }: Pattern): boolean {
  const isAtStart = source.startsWith('^') && !flags.includes('m');
  return !isAtStart && /(?<!\\)(?:\.|\[\^\])[*+]\??(?!\)*\$?$)/.test(source);
}

function isLinear(pattern: Pattern): boolean {
  const { reports } = analyse(pattern, { assumeRejectingSuffix: false, reportTypes: KINDS });
  return reports.length === 0 && !passesOftenOver(pattern);
}

test('every regular expression in src is linear', async () => {
  const built = await builtPatterns();
  const lateFiles = NODES.filter(({ nodes }) => nodes.some(buildsPattern))
    .map(({ file }) => file)
    .filter((file) => !built.some((pattern) => pattern.file === file));
  expect(lateFiles.toSorted()).toEqual(Object.keys(BUILT_LATE).toSorted());
  const all = [...NODES.flatMap(literalsOf), ...built];
  expect(all.length).toBeGreaterThan(300);
  const slow = all.filter((pattern) => !isLinear(pattern));
  expect(slow.map(({ file, source, flags }) => `${file}: /${source}/${flags}`)).toEqual([]);
});

test.each([/(a+)+$/, /\s+$/, /^(x:.*?)[ \t]*;[; \t]*$/, /a.*b/, /^a.*b/m])(
  'a new one such as %s would be found',
  (pattern) => {
    expect(isLinear({ file: '', source: pattern.source, flags: pattern.flags })).toBe(false);
  },
);
