// Assembles the WebAssembly of the scaling nodes.
import { readFileSync, writeFileSync } from 'node:fs';
import wabt from 'wabt';

const { parseWat } = await wabt();
const pixels = parseWat('pixels.wat', readFileSync('src/nodes/pixels.wat', 'utf8'), { simd: true });
writeFileSync('dist/nodes/pixels.wasm', pixels.toBinary({}).buffer);
