import { decodeApng, isApng } from './decode-apng.ts';
import { decodeBmp } from './decode-bmp.ts';
import type { Picture } from './decode-picture.ts';
import { decodePages, decodeStill } from './decode-still.ts';
import { NodeFailure, OutOfMemory } from '../node.ts';

/** An image file and the name its failures mention. */
export type ImageFile = { readonly name: string; readonly bytes: Uint8Array };

type Format = 'png' | 'jpeg' | 'webp' | 'gif' | 'bmp' | 'tiff' | 'avif';

/**
 * Formats are recognised by content, never by name. SVG is missing on purpose: v1 does not accept
 * it as an image.
 */
const SIGNATURES: readonly (readonly [Format, RegExp])[] = [
  ['png', /^\x89PNG\r\n/],
  ['jpeg', /^\xff\xd8\xff/],
  ['webp', /^RIFF[^]{4}WEBP/],
  ['gif', /^GIF8[79]a/],
  ['bmp', /^BM/],
  ['tiff', /^(II\*\0|MM\0\*)/],
  ['avif', /^[^]{4}ftypavi[fs]/],
];

/** First picture of a file, upright. */
export function decodeFirst(file: ImageFile): Promise<Picture> {
  return identified(file, async (format) =>
    format === 'bmp' ? decodeBmp(file.bytes) : decodeStill(file.bytes),
  );
}

/** Every frame of a file in order, those of animations composed; one for anything still. */
export function decodeFrames(file: ImageFile): Promise<readonly Picture[]> {
  return identified(file, async (format) => {
    if (format === 'bmp') return [await decodeBmp(file.bytes)];
    if (format === 'png' && isApng(file.bytes)) return decodeApng(file.bytes);
    if (format === 'gif' || format === 'webp') return decodeAnimation(file.bytes);
    return [await decodeStill(file.bytes)];
  });
}

async function decodeAnimation(bytes: Uint8Array): Promise<readonly Picture[]> {
  const { default: sharp } = await import('sharp');
  const { pages = 1 } = await sharp(bytes).metadata();
  return pages > 1 ? decodePages(bytes) : [await decodeStill(bytes)];
}

async function identified<T>(file: ImageFile, decode: (format: Format) => Promise<T>): Promise<T> {
  const head = Buffer.from(file.bytes.subarray(0, 16)).toString('latin1');
  const format = SIGNATURES.find(([, pattern]) => pattern.test(head))?.[0];
  if (format === undefined) throw unidentified(file);
  try {
    return await decode(format);
  } catch (error) {
    throw error instanceof OutOfMemory ? error : unidentified(file, { cause: error });
  }
}

/** v1's own words for a file that is not an image. */
function unidentified(file: ImageFile, options?: ErrorOptions): NodeFailure {
  return new NodeFailure(
    'PIL.UnidentifiedImageError',
    `cannot identify image file '${file.name}'`,
    options,
  );
}
