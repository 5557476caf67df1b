import { createRequire } from 'node:module';
import type sharp from 'sharp';

/** Loads sharp. Loaded as CommonJS, like the packages that it needs, it costs half the processor time. */
export function loadSharp(): typeof sharp {
  return createRequire(import.meta.url)('sharp') as typeof sharp;
}
