import sharp, { type Sharp } from 'sharp';
import type { JsonObject } from '../../protocol/json.ts';
import { type Files, InputError, type ModelProduct } from './thread-model.ts';
import { choice, integer } from './file-schema.ts';

/** The formats that are decoded. Documents that could name other files, such as SVG, are not allowed. */
const DECODABLE_FORMATS = new Set(['jpeg', 'png', 'webp', 'gif', 'tiff', 'heif']);
const MAX_PIXELS = 40_000_000;
/** The longest side of a picture that a model makes. */
export const MAX_SIDE = 4096;

/** The content types in which a picture is written. */
export const IMAGE_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const;
/** The facts about a picture in an answer, beside its bytes. */
export const IMAGE_FACTS = { width: { type: 'integer' }, height: { type: 'integer' } } as const;

/** The two fields that choose how a picture is written. */
export const ENCODING = {
  format: choice(['png', 'jpeg', 'webp'], 'file format of the picture'),
  quality: integer({ min: 1, max: 100, default: 90 }, 'of jpeg and webp'),
} as const;

/** Opens the picture of a field: upright, and its first frame only. */
export async function openInputPicture(files: Files, field: string): Promise<Sharp> {
  const bytes = files[field] ?? new Uint8Array();
  // `sharp` reports empty bytes as an error of its caller.
  if (bytes.length === 0) return throwUnreadable(field);
  const { format, width, height } = await sharp(bytes, { limitInputPixels: false })
    .metadata()
    .catch(() => throwUnreadable(field));
  if (!DECODABLE_FORMATS.has(format)) {
    const msg = `${format} pictures are not taken`;
    throw new InputError(field, { type: 'unsupported_image_format', msg });
  }
  if (width * height > MAX_PIXELS) {
    const msg = `The picture has more than ${MAX_PIXELS} pixels`;
    throw new InputError(field, { type: 'image_too_large', msg, ctx: { max_pixels: MAX_PIXELS } });
  }
  return sharp(bytes, { limitInputPixels: MAX_PIXELS }).autoOrient();
}

/** Writes a picture as the input requests. A damaged file is noticed only here. */
export async function writePicture(
  image: Sharp,
  input: JsonObject,
  field: string,
): Promise<ModelProduct> {
  const format = input.format as 'png' | 'jpeg' | 'webp';
  const quality = input.quality as number;
  return await encodeImage(image.toFormat(format, format === 'png' ? {} : { quality }), field);
}

/** Runs the pipeline of a picture that came from `field`. */
async function encodeImage(image: Sharp, field: string): Promise<ModelProduct> {
  const { data, info } = await image
    .toBuffer({ resolveWithObject: true })
    .catch(() => throwUnreadable(field));
  const { width, height, format } = info;
  return { kind: 'file', bytes: data, contentType: `image/${format}`, facts: { width, height } };
}

/** Throws the error of a picture that cannot be read. */
function throwUnreadable(field: string): never {
  throw new InputError(field, { type: 'image_load_error', msg: 'The picture cannot be read' });
}
