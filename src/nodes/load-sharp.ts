import { createRequire } from 'node:module';
import type sharp from 'sharp';

const require = createRequire(import.meta.url);

/** Loads sharp when it is first needed: that takes a quarter of a second, and most starts need no picture. */
export function loadSharp(): typeof sharp {
  return require('sharp') as typeof sharp;
}
