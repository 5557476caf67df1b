import { createRequire } from 'node:module';
import type sharp from 'sharp';

const require = createRequire(import.meta.url);

/** Loads sharp. Loaded as CommonJS, like the packages that it needs, it costs half the processor time. */
export function loadSharp(): typeof sharp {
  return require('sharp') as typeof sharp;
}
