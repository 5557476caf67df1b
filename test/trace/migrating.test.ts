import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { pngOf } from '../support/clients/client-helpers.ts';
import { type Holdover, startHoldover } from '../support/processes/holdover.ts';
import { type Ran, type Runners, openRunners } from '../support/clients/v2-code.ts';
import { runFolder } from '../support/graphs/v1-folders.ts';

// docs/migrating.md: every block of code in it runs.

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const PAGE = await readFile(new URL('../../docs/migrating.md', import.meta.url), 'utf8');

type Block = { readonly kind: string; readonly under: string; readonly code: string };

const BLOCKS: readonly Block[] = [...PAGE.matchAll(/^```(\w+ [\w.]+)\n(.*?)^```$/gms)].map(
  ({ 1: kind = '', 2: code = '', index }) => {
    const under = [...PAGE.slice(0, index).matchAll(/^## (.*)$/gm)].at(-1)?.[1] ?? '';
    return { kind, under, code };
  },
);

/** The blocks of one kind are one program. */
const PROGRAMS = [
  { kind: 'python v1', runner: 'python', file: 'v1.py', picture: 'v1-python.png' },
  { kind: 'python v2', runner: 'python', file: 'v2.py', picture: 'v2-python.png' },
  { kind: 'ts v2', runner: 'typescript', file: 'v2.mts', picture: 'v2-typescript.png' },
] as const;

/** Says that everything up to a block has run. */
const MARKS = {
  python: (at: number) => `print("ran block ${at}.")\n`,
  typescript: (at: number) => `console.log('ran block ${at}.');\n`,
} as const satisfies Record<keyof Runners, (at: number) => string>;

const runnable = await openRunners({ cwd: tmpdir(), env: {} });

/** The graph that all of them run is a file of its own. */
const SECTIONS = [
  ...new Set(BLOCKS.filter(({ kind }) => kind !== 'json workflow.json').map(({ under }) => under)),
];

test('no block is of a kind that is not run', () => {
  const fences = [...PAGE.matchAll(/^```\S/gm)].length;
  const kinds = new Set(['json workflow.json', ...PROGRAMS.map(({ kind }) => kind)]);
  expect(fences).toBe(BLOCKS.length);
  expect(BLOCKS.filter(({ kind }) => !kinds.has(kind))).toEqual([]);
});

test.each(SECTIONS)('%s has both versions of the code', (title) => {
  const kinds = BLOCKS.filter(({ under }) => under === title).map(({ kind }) => kind);
  expect(kinds).toEqual(PROGRAMS.map(({ kind }) => kind));
});

describe.each(PROGRAMS)('$kind', ({ kind, runner: language, file, picture }) => {
  const blocks = BLOCKS.filter((block) => block.kind === kind);
  const runner = runnable[language];
  const notRun = runner.ok ? '' : ` (NOT RUN: ${runner.why})`;
  if (notRun) console.warn(`docs/migrating.md, ${kind}${notRun}`);
  let dir: string;
  let holdover: Holdover;
  let ran: Ran | false;

  beforeAll(async () => {
    if (notRun) return;
    dir = await runFolder('migrating');
    holdover = await startHoldover({ upstream: 'embedded' });
    const graph = BLOCKS.find((block) => block.kind.startsWith('json'))?.code ?? '';
    await writeFile(join(dir, 'workflow.json'), graph);
    await writeFile(join(dir, 'cat.png'), await pngOf());
    const lines = blocks.map(({ code }, at) => code + MARKS[language](at)).join('');
    await writeFile(
      join(dir, file),
      lines.replaceAll('127.0.0.1:8188', new URL(holdover.url).host),
    );
    const here = (await openRunners({ cwd: dir, env: {} }))[language];
    ran = here.ok && (await here.run(file));
  });
  afterAll(() => holdover?.dispose());

  test.skipIf(notRun).each(blocks.map(({ under }, at) => ({ under, at })))(
    `$under: block $at runs${notRun}`,
    ({ at }) => {
      expect(ran).toMatchObject({ out: expect.stringContaining(`ran block ${at}.\n`) });
    },
  );

  test.skipIf(notRun)(`ends well, with the picture it was to make${notRun}`, async () => {
    expect(ran).toMatchObject({ code: 0, err: '' });
    const [made, cat] = await Promise.all(
      [join(dir, picture), join(dir, 'cat.png')].map((path) =>
        sharp(path).removeAlpha().raw().toBuffer(),
      ),
    );
    // Rounded down to a whole number.
    const off = [...made!].filter((value, at) => Math.abs(value - (255 - cat![at]!)) > 1);
    expect([made!.length, off]).toEqual([cat!.length, []]);
  });
});
