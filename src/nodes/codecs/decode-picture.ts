import { OutOfMemory } from '../node.ts';

/** One decoded picture, 8 bits a channel, colours as stored (no profile applied, alpha not multiplied in). */
export type Picture = {
  readonly width: number;
  readonly height: number;
  /** The file has an alpha channel, or a palette with transparency; a colour key does not count. */
  readonly hasAlpha: boolean;
  readonly channels: 3 | 4;
  readonly bytes: Uint8Array;
};

/** Most pixels one file may decode to, all its frames together. */
const MAX_PIXELS = 64 * 1024 * 1024;

/** Refuses a size that would not fit, before anything is decoded. */
export function refuseTooManyPixels(pixels: number): void {
  if (pixels > MAX_PIXELS) {
    throw new OutOfMemory(
      `the image has ${pixels} pixels, more than the ${MAX_PIXELS} that are decoded`,
    );
  }
}

/** Its pixels with an alpha each. */
export function rgbaOf({ bytes, channels }: Pick<Picture, 'bytes' | 'channels'>): Uint8Array {
  if (channels === 4) return bytes;
  const rgba = new Uint8Array((bytes.length / 3) * 4).fill(255);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    rgba[to] = bytes[from] as number;
    rgba[to + 1] = bytes[from + 1] as number;
    rgba[to + 2] = bytes[from + 2] as number;
  }
  return rgba;
}

/** Its pixels without their alpha. */
export function rgbOf({ bytes, channels }: Pick<Picture, 'bytes' | 'channels'>): Uint8Array {
  if (channels === 3) return bytes;
  const rgb = new Uint8Array((bytes.length / 4) * 3);
  for (let from = 0, to = 0; to < rgb.length; from += 4, to += 3) {
    rgb[to] = bytes[from] as number;
    rgb[to + 1] = bytes[from + 1] as number;
    rgb[to + 2] = bytes[from + 2] as number;
  }
  return rgb;
}
