// The files that a start reads: a bundle replaces what `tsc` wrote for the entry points. A start that reads each module
// for itself takes more than twice as long.
import { build } from 'rolldown';

/** Packages with native code, WebAssembly or threads, which they load from beside themselves; and optional ones. */
const OUTSIDE = [
  'sharp',
  'blake3',
  'tinypool',
  '@photostructure/sqlite',
  '@napi-rs/blake-hash',
  '@cwasm/nsbmp',
];

const ENTRIES = [
  'main',
  'demo',
  'engine/execution/worker-entry',
  'router/local/thread-worker',
  'files/draw-picture',
  // A worker, its nodes and authors of more nodes share the classes of these two.
  'nodes/library',
  'nodes/node',
];

await build({
  input: Object.fromEntries(ENTRIES.map((entry) => [entry, `src/${entry}.ts`])),
  platform: 'node',
  external: [...OUTSIDE, /^@aws-sdk\//, /^@opentelemetry\/(?!api$)/],
  // An old helper of Koa's has a reason for its eval.
  checks: { eval: false, ineffectiveDynamicImport: false },
  // One folder deep, like the modules: addresses relative to `import.meta.url` stay right.
  // Comments would be read, decoded and skipped at each start; the licences are in a file of their own.
  output: { dir: 'dist', format: 'esm', chunkFileNames: 'chunks/[name].js', comments: false },
});
