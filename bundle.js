// Makes a few files of the hundreds that a start would read; what it writes replaces what `tsc`
// wrote for the entry points. All other modules stay for tests to import; package.json packs only what
// this writes.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { build } from 'rolldown';
import wabt from 'wabt';

/**
 * Native code and WebAssembly, which packages load from beside themselves; and a language model that is as
 * large as all other code together.
 */
const IN_PLACE =
  /^(sharp|blake3|tinypool|@photostructure\/sqlite|@napi-rs\/blake-hash|@cwasm\/nsbmp|wink-nlp|wink-eng-lite-web-model)(\/|$)/;

// Pieces that an earlier build named otherwise would be packed too.
rmSync('dist/chunks', { recursive: true, force: true });

await build({
  input: {
    main: 'src/main.ts',
    demo: 'src/demo.ts',
    'upstreams/execution/worker-entry': 'src/upstreams/execution/worker-entry.ts',
    'models/local/thread-worker': 'src/models/local/thread-worker.ts',
    // The worker, its nodes and authors of more nodes share these classes.
    'nodes/library': 'src/nodes/library.ts',
    'nodes/node': 'src/nodes/node.ts',
  },
  platform: 'node',
  external: IN_PLACE,
  // An old helper of Koa's has a reason for its eval.
  checks: { eval: false },
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    // One folder deep, like the modules: addresses relative to `import.meta.url` stay right.
    chunkFileNames: 'chunks/[name].js',
    // The package is half as large. Names stay, for the traces of errors.
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  },
});

const PIXELS = 'nodes/pixels';
const { parseWat } = await wabt();
const pixels = parseWat(`${PIXELS}.wat`, readFileSync(`src/${PIXELS}.wat`, 'utf8'), { simd: true });
writeFileSync(`dist/${PIXELS}.wasm`, pixels.toBinary({}).buffer);
