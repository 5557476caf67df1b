// Makes a few files of the hundreds that a start would read; what it writes replaces what `tsc`
// wrote for the entry points. All other modules stay for tests to import; package.json packs only what
// this writes. The files are CommonJS: V8's compiled code can be kept for them on every version of Node.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, relative } from 'node:path/posix';
import mimeTypes from 'mime-types';
import { build } from 'rolldown';
import { Visitor, parseSync } from 'rolldown/utils';
import wabt from 'wabt';
import { pagePackages } from './bundle-page.js';

/**
 * Native code and WebAssembly, which packages load from beside themselves; and a language model that is as
 * large as all other code together.
 */
const IN_PLACE =
  /^(sharp|blake3|tinypool|@photostructure\/sqlite|@napi-rs\/blake-hash|aws4fetch|@cwasm\/nsbmp|wink-nlp|wink-eng-lite-web-model)(\/|$)/;

/**
 * Each becomes one file, with all that these modules import and no earlier group has: a start reads three files
 * instead of sixty. The threads load `engine` alone; help and refusals need only `process`.
 */
const GROUPS = [
  { name: 'engine', priority: 3, test: /\/src\/(upstreams\/execution\/(?!worker-entry)[^/]+|nodes\/(library|node))\.ts$/ },
  { name: 'process', priority: 2, test: /\/src\/cli\/serve\.ts$/ },
  { name: 'server', priority: 1, test: /\/src\/app\/server\.ts$/ },
];

/** A module of its own: not the package, which stays outside. */
const NO_OPENTELEMETRY = 'without-opentelemetry';

// Pieces that an earlier build named otherwise would be packed too.
rmSync('dist/chunks', { recursive: true, force: true });

// It is loaded by Node, and loads all others.
const LOADER = 'compile-cache.cjs';
const mimeDb = createRequire(import.meta.resolve('mime-types'))('mime-db');
const MINIFY = { compress: false, mangle: { keepNames: true }, codegen: { removeWhitespace: true } };

/** The exports of a file: final by then, so that others read them without a call. A prompt reads over a hundred. */
const GETTER = /Object\.defineProperty\(exports,("[^"]+"),\{enumerable:true,get:function\(\)\{return ([\w$]+)\}\}\)/g;
const EXPORTS_AT_END = new RegExp(`(${GETTER.source};?)+\\s*$`);

await build({
  input: 'src/lib/compile-cache.ts',
  platform: 'node',
  output: { file: `dist/chunks/${LOADER}`, format: 'cjs', minify: MINIFY },
});

const THREADS = ['upstreams/execution/worker-entry', 'models/local/thread-worker'];
// The worker, its nodes and authors of more nodes share the classes of the last two.
const ENTRIES = ['main', 'demo', ...THREADS, 'nodes/library', 'nodes/node'];

const { output } = await build({
  input: Object.fromEntries(ENTRIES.map((entry) => [nameOf(entry), `src/${entry}.ts`])),
  platform: 'node',
  external: IN_PLACE,
  // An old helper of Koa's has a reason for its eval.
  checks: { eval: false },
  plugins: [
    {
      name: 'loader',
      resolveId: (id) => (id.endsWith('/lib/compile-cache.ts') ? { id: `./${LOADER}`, external: true } : undefined),
    },
    // `prom-client` uses it for exemplars, which no metric here has. Traces load it where it is installed.
    {
      name: 'without-opentelemetry',
      resolveId(id, importer = '') {
        if (!id.startsWith('@opentelemetry/')) return undefined;
        return importer.includes('/prom-client/') ? NO_OPENTELEMETRY : { id, external: true };
      },
      load: (id) => (id === NO_OPENTELEMETRY ? 'export {}' : undefined),
    },
    // At each start it weighs the types of a thousand file extensions against each other.
    {
      name: 'mime-types',
      transform: (code, id) => (id.endsWith('/mime-types/index.js') ? withChosenTypes(code) : undefined),
    },
    // Their texts must go with the code that is taken over from these packages.
    {
      name: 'licenses',
      generateBundle(_options, files) {
        const modules = Object.values(files).flatMap((file) => file.moduleIds ?? []);
        const bundled = modules.flatMap((id) => /^.*\/node_modules\/(@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []);
        const folders = new Set([...bundled, ...pagePackages]);
        writeFileSync('dist/LICENSES.txt', [...folders].toSorted().map(licenseIn).join('\n'));
      },
    },
    // One other character makes V8 hold a whole file with two bytes a character.
    {
      name: 'ascii',
      generateBundle(_options, files) {
        for (const file of Object.values(files)) {
          if (file.type === 'chunk') file.code = file.code.replace(/[^\x00-\x7f]/g, escaped);
        }
      },
    },
    // V8 runs a script of ours without the means of Node to import a module.
    {
      name: 'import-outside',
      generateBundle(_options, files) {
        for (const file of Object.values(files)) {
          if (file.type === 'chunk') file.code = withImportOutside(file.code);
        }
      },
    },
    {
      name: 'plain-exports',
      generateBundle(_options, files) {
        for (const file of Object.values(files)) {
          if (file.type === 'chunk') file.code = file.code.replace(EXPORTS_AT_END, withoutGetters);
        }
      },
    },
  ],
  output: {
    dir: 'dist',
    format: 'cjs',
    // One folder deep, like the modules: addresses relative to `import.meta.url` stay right.
    entryFileNames: 'chunks/[name].cjs',
    chunkFileNames: 'chunks/[name].cjs',
    codeSplitting: { groups: GROUPS },
    // The package is half as large. Names of functions and classes stay, for the traces of errors.
    minify: MINIFY,
  },
});

for (const thread of THREADS) {
  if (filesOf(chunkOf(thread)).has('chunks/server.cjs')) throw new Error(`${thread} loads the server: see GROUPS`);
}
for (const entry of ENTRIES) {
  mkdirSync(dirname(`dist/${entry}`), { recursive: true });
  writeFileSync(`dist/${entry}.js`, starterOf(entry));
}

function nameOf(entry) {
  return entry.replaceAll('/', '-');
}

function chunkOf(entry) {
  return `chunks/${nameOf(entry)}.cjs`;
}

/** An ES module that loads an entry point and has its exports. */
function starterOf(entry) {
  const { exports } = output.find(({ fileName }) => fileName === chunkOf(entry));
  const pathTo = (chunk) => `./${relative(dirname(entry), chunk)}`;
  const lines = [
    ...(entry === 'main' ? ['#!/usr/bin/env node'] : []),
    `import { createRequire } from 'node:module';`,
    'const require = createRequire(import.meta.url);',
    `const { loadBundled } = require('${pathTo(`chunks/${LOADER}`)}');`,
    `const entry = loadBundled(require.resolve('${pathTo(chunkOf(entry))}'));`,
    ...exports.map((name) => `export const ${name} = entry.${name};`),
  ];
  return `${lines.join('\n')}\n`;
}

function withoutGetters(exported) {
  return exported.replace(GETTER, 'exports[$1]=$2');
}

/** Each `import(…)` becomes a call of the loader's function. */
function withImportOutside(code) {
  if (!code.includes('import(')) return code;
  const found = [];
  new Visitor({ ImportExpression: ({ start }) => found.push(start) }).visit(parseSync('chunk.cjs', code).program);
  return found.reduceRight((text, at) => `${text.slice(0, at)}importOutside${text.slice(at + 'import'.length)}`, code);
}

/** `mime-types` with its choices between two types of an extension. */
function withChosenTypes(code) {
  const choose = '\npopulateMaps(exports.extensions, exports.types)\n';
  if (!code.includes(choose)) throw new Error('mime-types chooses types in another way');
  const last = {};
  for (const [type, { extensions = [] }] of Object.entries(mimeDb)) for (const each of extensions) last[each] = type;
  const chosen = Object.entries(mimeTypes.types).filter(([extension, type]) => last[extension] !== type);
  return code.replace(
    choose,
    `
    for (const type of Object.keys(db)) {
      const names = db[type].extensions;
      if (!names || names.length === 0) continue;
      exports.extensions[type] = names;
      for (const name of names) exports.types[name] = type;
    }
    Object.assign(exports.types, ${JSON.stringify(Object.fromEntries(chosen))});
    `,
  );
}

/** A file and all that it imports. */
function filesOf(fileName, found = new Set()) {
  if (found.has(fileName)) return found;
  found.add(fileName);
  for (const name of output.find((file) => file.fileName === fileName)?.imports ?? []) filesOf(name, found);
  return found;
}

function licenseIn(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
  const texts = files.map((file) => readFileSync(`${folder}/${file}`, 'utf8'));
  return [`== ${name} ${version} (${license})`, ...texts].join('\n\n');
}

function escaped(character) {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const PIXELS = 'nodes/pixels';
const { parseWat } = await wabt();
const pixels = parseWat(`${PIXELS}.wat`, readFileSync(`src/${PIXELS}.wat`, 'utf8'), { simd: true });
writeFileSync(`dist/${PIXELS}.wasm`, pixels.toBinary({}).buffer);
