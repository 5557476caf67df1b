import { OutOfMemory } from './node.ts';

/** One decoded picture, 8-bit RGBA, colours as stored (no profile applied, alpha not multiplied in). */
export type Picture = {
  readonly width: number;
  readonly height: number;
  /** The file has an alpha channel, or a palette with transparency; a colour key does not count. */
  readonly hasAlpha: boolean;
  readonly rgba: Uint8Array;
};

/** Most pixels one file may decode to, all its frames together. */
export const MAX_PIXELS = 64 * 1024 * 1024;

/** Refuses a size that would not fit, before anything is decoded. */
export function refuseTooManyPixels(pixels: number): void {
  if (pixels > MAX_PIXELS) {
    throw new OutOfMemory(
      `the image has ${pixels} pixels, more than the ${MAX_PIXELS} that are decoded`,
    );
  }
}
