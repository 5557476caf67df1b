import { loadSharp } from '../load-sharp.ts';
import { isPng, readPngChunks, viewOf, writePng } from './png-chunks.ts';
import { OutOfMemory } from '../node.ts';

/**
 * One decoded picture with 8 bits a channel. Colours are as stored: no profile is applied, alpha is
 * not multiplied in.
 */
export type DecodedPicture = {
  readonly width: number;
  readonly height: number;
  /** True when its mask has the size of the picture. */
  readonly hasAlpha: boolean;
  readonly channels: 3 | 4;
  readonly bytes: Uint8Array;
};

/** The most pixels that one file may decode to, all its frames together. */
export const MAX_PIXELS = 64 * 1024 * 1024;

/** Refuses a size above the limit before anything is decoded. */
export function refuseTooManyPixels(pixels: number): void {
  if (pixels > MAX_PIXELS) {
    throw new OutOfMemory(
      `the image has ${pixels} pixels, more than the ${MAX_PIXELS} that are decoded`,
    );
  }
}

/**
 * Returns the pixels with an alpha value each, opaque where the picture has none; or without alpha.
 */
export function pixelsWith(
  wanted: DecodedPicture['channels'],
  { bytes, channels }: Pick<DecodedPicture, 'bytes' | 'channels'>,
): Uint8Array {
  if (channels === wanted) return bytes;
  const pixels = new Uint8Array((bytes.length / channels) * wanted).fill(255);
  for (let from = 0, to = 0; from < bytes.length; from += channels, to += wanted) {
    pixels[to] = bytes[from] as number;
    pixels[to + 1] = bytes[from + 1] as number;
    pixels[to + 2] = bytes[from + 2] as number;
  }
  return pixels;
}

/**
 * v1 loads an incomplete file as far as it goes, and applies no colour profile. The pixels are
 * counted below.
 */
const OPTIONS = { failOn: 'none', ignoreIcc: true, limitInputPixels: false } as const;

/** Decodes an ordinary still image: any format sharp reads, Exif orientation applied. */
export async function decodeStill(bytes: Uint8Array): Promise<DecodedPicture> {
  const sharp = loadSharp();
  const image = sharp(completed(bytes), OPTIONS);
  const { width, height, ...facts } = await image.metadata();
  refuseTooManyPixels(width * height);
  const hasAlpha = facts.hasAlpha && !isBilevelPng(bytes);
  const upright = image.autoOrient();
  const pixels = hasAlpha ? upright.ensureAlpha() : upright.removeAlpha();
  const { data, info } = await pixels.raw().toBuffer({ resolveWithObject: true });
  return {
    width: info.width,
    height: info.height,
    hasAlpha: hasAlpha || hasMask(bytes),
    channels: hasAlpha ? 4 : 3,
    bytes: data,
  };
}

/** Decodes an animation. sharp stacks its composed frames into one tall picture. */
export async function decodePages(bytes: Uint8Array): Promise<readonly DecodedPicture[]> {
  const sharp = loadSharp();
  const image = sharp(bytes, { ...OPTIONS, animated: true });
  const { width, height, pageHeight = height } = await image.metadata();
  refuseTooManyPixels(width * height);
  const data = await image.ensureAlpha().raw().toBuffer();
  const hasAlpha = hasMask(bytes) || hasTransparentPixel(data);
  const size = width * pageHeight * 4;
  return Array.from({ length: Math.floor(height / pageHeight) }, (_, i) => ({
    width,
    height: pageHeight,
    hasAlpha,
    channels: 4 as const,
    bytes: data.subarray(i * size, (i + 1) * size),
  }));
}

/** Completes a PNG that was cut off. Otherwise the decoder would not return its rows. */
function completed(bytes: Uint8Array): Uint8Array {
  const chunks = isPng(bytes) ? readPngChunks(bytes) : [];
  if (chunks.length === 0 || chunks.at(-1)?.type === 'IEND') return bytes;
  return writePng([...chunks, { type: 'IEND', data: new Uint8Array() }]);
}

const PNG_PALETTE = 3;

/** True for a PNG of one bit without a palette. v1 ignores its colour key. */
function isBilevelPng(bytes: Uint8Array): boolean {
  return isPng(bytes) && bytes[24] === 1 && bytes[25] === 0;
}

/**
 * True for a file that v1 decodes with alpha, even when every pixel is opaque: a GIF, a WEBP without
 * loss, and a PNG or TIFF with a palette.
 */
function hasMask(bytes: Uint8Array): boolean {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  if (head.startsWith('GIF8') || (head.startsWith('RIFF') && isLosslessWebp(bytes))) return true;
  if (/^(II\*\0|MM\0\*)/.test(head)) return isPaletteTiff(bytes);
  return isPng(bytes) && bytes[25] === PNG_PALETTE;
}

/** True for a WEBP without loss. Chunks of metadata may precede the one of the picture. */
function isLosslessWebp(bytes: Uint8Array): boolean {
  const riff = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 12; at + 8 <= riff.length;) {
    const type = riff.toString('latin1', at, at + 4);
    if (type === 'VP8L' || type === 'VP8 ') return type === 'VP8L';
    const size = riff.readUInt32LE(at + 4);
    at += 8 + size + (size % 2);
  }
  return false;
}

/** The tag of a TIFF that holds the colours of its palette. */
const TIFF_COLOUR_MAP = 320;

/** True when the first page of a TIFF has a palette. */
function isPaletteTiff(bytes: Uint8Array): boolean {
  const view = viewOf(bytes);
  const isLittle = bytes[0] === 0x49;
  const page = view.getUint32(4, isLittle);
  return Array.from({ length: view.getUint16(page, isLittle) }, (_, i) =>
    view.getUint16(page + 2 + i * 12, isLittle),
  ).includes(TIFF_COLOUR_MAP);
}

/** True when a pixel is transparent. An animated WEBP always decodes to four channels. */
function hasTransparentPixel(rgba: Uint8Array): boolean {
  for (let i = 3; i < rgba.length; i += 4) if (rgba[i] !== 255) return true;
  return false;
}

/** The length of the header that holds the sizes in OS/2 files. */
const OS2_HEADER_BYTES = 12;

/** Pixels of so many bits are numbers of a palette, which v1 decodes with alpha. */
const MAX_PALETTE_BITS = 8;

/** Decodes a Windows bitmap, which sharp cannot. */
export async function decodeBmp(bytes: Uint8Array): Promise<DecodedPicture> {
  refuseTooManyPixels(bmpPixels(bytes));
  const { decode } = await import('@cwasm/nsbmp');
  const { width, height, data } = decode(bytes);
  const rgba = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const bits = viewOf(bytes).getUint16(isOfOs2(bytes) ? 24 : 28, true);
  const hasAlpha = bits <= MAX_PALETTE_BITS || hasAlphaMask(viewOf(bytes));
  return { width, height, hasAlpha, channels: 4, bytes: rgba };
}

const BIT_FIELDS = 3;
/** The length of the first header that names the bits of the alpha. */
const ALPHA_HEADER_BYTES = 56;

function hasAlphaMask(view: DataView): boolean {
  const hasMasks =
    view.getUint32(14, true) >= ALPHA_HEADER_BYTES && view.getUint32(30, true) === BIT_FIELDS;
  return hasMasks && view.getUint32(66, true) !== 0;
}

/** Returns the number of pixels in the header of a Windows bitmap. */
export function bmpPixels(bytes: Uint8Array): number {
  const view = viewOf(bytes);
  return isOfOs2(bytes)
    ? view.getUint16(18, true) * view.getUint16(20, true)
    : view.getUint32(18, true) * Math.abs(view.getInt32(22, true));
}

function isOfOs2(bytes: Uint8Array): boolean {
  return viewOf(bytes).getUint32(14, true) === OS2_HEADER_BYTES;
}
