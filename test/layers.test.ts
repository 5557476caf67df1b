import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** A folder imports only from folders with a lower number. docs/architecture.md says what is in each. */
const LAYERS: Readonly<Record<string, number>> = {
  main: 12,
  demo: 12,
  cli: 11,
  app: 10,
  v1: 9,
  v2: 9,
  console: 9,
  pages: 9,
  replication: 9,
  prompts: 8,
  'shared-folders': 8,
  files: 7,
  migration: 7,
  engine: 7,
  passthrough: 7,
  remote: 7,
  router: 7,
  auth: 5,
  blobs: 6,
  'data-folder': 5,
  definitions: 5,
  http: 4,
  ledger: 4,
  nodes: 4,
  sockets: 4,
  tracing: 4,
  dialects: 3,
  'job-events': 3,
  redis: 3,
  observability: 2,
  translate: 2,
  config: 1,
  lib: 1,
  protocol: 0,
};

/** Only `app` and `cli` name one of these; all other code sees the port. */
const DRIVERS = [
  /^ledger\/redis\//,
  /^ledger\/sqlite\//,
  /^blobs\/bucket\//,
  /^blobs\/folder\//,
  /^engine\/bullmq\//,
  /^engine\/memory\//,
  /^passthrough\//,
  /^remote\//,
];

const MAX_FILES = 20;
/** Folders with more files, and the reason. */
const LARGE_FOLDERS: Readonly<Record<string, string>> = {};

const MAX_LINES = 300;

type Source = { readonly name: string; readonly text: string; readonly imports: readonly string[] };

const SOURCES: readonly Source[] = readdirSync(join(ROOT, 'src'), {
  recursive: true,
  encoding: 'utf8',
})
  .filter((name) => name.endsWith('.ts'))
  .map((name) => {
    const text = readFileSync(join(ROOT, 'src', name), 'utf8');
    return { name, text, imports: importsOf(name, text) };
  });

/** Type imports, exports of other files and imports at run time count too. */
function importsOf(name: string, text: string): readonly string[] {
  const targets = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
  return [...targets].map(([, target = '']) => normalize(join(dirname(name), target)));
}

/** The folder directly below `src`, or the name of a file there. */
function topOf(name: string): string {
  return name.replace(/(\/.*|\.ts)$/, '');
}

function driverOf(name: string): RegExp | undefined {
  return DRIVERS.find((driver) => driver.test(name));
}

/** `from > to` for every import that `isWrong`. */
function wrongImports(isWrong: (from: string, to: string) => boolean): readonly string[] {
  return SOURCES.flatMap(({ name, imports }) =>
    imports.filter((target) => isWrong(name, target)).map((target) => `${name} > ${target}`),
  );
}

const FOLDERS = [...new Set(SOURCES.map(({ name }) => dirname(name)))].filter(
  (folder) => folder !== '.',
);

describe('the three rules of the map', () => {
  test('imports are found, and every folder has a layer', () => {
    expect(SOURCES.flatMap(({ imports }) => imports).length).toBeGreaterThan(1000);
    expect([...new Set(SOURCES.map(({ name }) => topOf(name)))].toSorted()).toEqual(
      Object.keys(LAYERS).toSorted(),
    );
  });

  test('a folder imports only from folders on lower layers', () => {
    const layer = (name: string) => LAYERS[topOf(name)] ?? 0;
    const isUp = (from: string, to: string) =>
      topOf(from) !== topOf(to) && layer(to) >= layer(from);
    expect(wrongImports(isUp)).toEqual([]);
  });

  test('only app and cli name a driver', () => {
    const isForeign = (from: string, to: string) => {
      const driver = driverOf(to);
      return driver !== undefined && !driver.test(from) && !['app', 'cli'].includes(topOf(from));
    };
    expect(wrongImports(isForeign)).toEqual([]);
  });

  test('pictures are decoded and drawn on worker threads only', () => {
    const DRAWING = 'files/draw-picture.ts';
    const onThreads = (name: string) => /^(nodes|router\/local)\//.test(name) || name === DRAWING;
    const decoders = SOURCES.filter(({ text }) => /['"](sharp|@cwasm\/nsbmp)['"]/.test(text));
    expect(decoders.map(({ name }) => name)).toContain(DRAWING);
    expect(decoders.map(({ name }) => name).filter((name) => !onThreads(name))).toEqual([]);
    expect(wrongImports((_, to) => to === DRAWING)).toEqual([]);
    expect(wrongImports((from, to) => to === 'nodes/decoders.ts' && from !== DRAWING)).toEqual([
      'cli/check.ts > nodes/decoders.ts',
      'files/pictures.ts > nodes/decoders.ts',
    ]);
  });

  test('code outside a folder imports the files of the folder, not of its sub-folders', () => {
    const isInside = (from: string, to: string) =>
      topOf(from) !== topOf(to) &&
      to.split('/').length > 2 &&
      dirname(to) !== 'translate/progress' &&
      driverOf(to) === undefined;
    expect(wrongImports(isInside)).toEqual([]);
  });
});

describe('the shape of the tree', () => {
  test('no file imports itself through others, by types either', () => {
    expect(circles()).toEqual([]);
  });

  test('prompts reads from submit through follow to state, and not back', () => {
    const parts = ['prompts/state', 'prompts/follow', 'prompts/submit'];
    const isBack = (from: string, to: string) =>
      parts.includes(dirname(from)) && parts.indexOf(dirname(to)) > parts.indexOf(dirname(from));
    expect(wrongImports(isBack)).toEqual([]);
  });

  test('only main.ts and demo.ts are directly in src, and folders have two levels at most', () => {
    const loose = SOURCES.filter(({ name }) => dirname(name) === '.').map(({ name }) => name);
    expect(loose.toSorted()).toEqual(['demo.ts', 'main.ts']);
    expect(FOLDERS.filter((folder) => folder.split('/').length > 2)).toEqual([]);
  });

  test(`a folder has ${MAX_FILES} files at most, or a reason`, () => {
    const countOf = (folder: string) =>
      SOURCES.filter(({ name }) => dirname(name) === folder).length;
    const large = FOLDERS.filter((folder) => countOf(folder) > MAX_FILES);
    expect(large.toSorted()).toEqual(Object.keys(LARGE_FOLDERS).toSorted());
  });

  test(`a file has ${MAX_LINES} lines at most`, () => {
    const files = ['src', 'page'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.tsx?$/.test(name))
        .map((name) => join(folder, name)),
    );
    const linesOf = (name: string) => readFileSync(join(ROOT, name), 'utf8').split('\n').length;
    expect(files.filter((name) => linesOf(name) > MAX_LINES + 1)).toEqual([]);
  });

  test('translate and protocol do no I/O and know no clock or randomness', () => {
    const impure =
      /from 'node:(?!stream')|\bDate\.now\(|new Date\(\)|Math\.random\(|setTimeout\(|\bfetch\(/;
    const pure = SOURCES.filter(({ name }) => ['translate', 'protocol'].includes(topOf(name)));
    expect(pure.filter(({ text }) => impure.test(text)).map(({ name }) => name)).toEqual([]);
  });

  test('docs/architecture.md says of every folder in one sentence what is in it', () => {
    const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
    const rows = page.matchAll(/^\| `([a-z0-9/-]+)` \| (?:\d+ )?\| [^|]+ \|$/gm);
    const described = [...rows].map(([, folder = '']) => folder);
    expect(described.toSorted()).toEqual(FOLDERS.toSorted());
  });
});

/** Groups of files that reach each other (Tarjan's strongly connected components). */
function circles(): readonly string[] {
  const importsBy = new Map(SOURCES.map(({ name, imports }) => [name, imports]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const found: string[] = [];
  const visit = (name: string): number => {
    const place = order.size;
    order.set(name, place);
    lowest.set(name, place);
    stack.push(name);
    for (const target of importsBy.get(name) ?? []) {
      if (!importsBy.has(target)) continue;
      const reached = order.has(target) ? order.get(target) : visit(target);
      const isOpen = stack.includes(target);
      if (isOpen)
        lowest.set(
          name,
          Math.min(lowest.get(name) ?? place, lowest.get(target) ?? 0, reached ?? 0),
        );
    }
    if (lowest.get(name) === place) {
      const group = stack.splice(stack.indexOf(name));
      if (group.length > 1) found.push(group.join(' '));
    }
    return lowest.get(name) ?? place;
  };
  for (const { name } of SOURCES) if (!order.has(name)) visit(name);
  return found;
}
