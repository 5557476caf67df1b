import { loadSharp } from '../../nodes/load-sharp.ts';
import type { Sharp } from 'sharp';
import type { JsonObject } from '../../protocol/json.ts';
import { type Files, InputError, type ModelProduct } from './thread-model.ts';
import { choice, integer, jsonAnswer } from './file-schema.ts';

/** The formats that are decoded. Documents that could name other files, such as SVG, are not allowed. */
const DECODABLE_FORMATS = new Set(['jpeg', 'png', 'webp', 'gif', 'tiff', 'heif']);
const MAX_PIXELS = 40_000_000;
/** The longest side of a picture that a model makes. */
export const MAX_SIDE = 4096;

const TEXT = { type: 'string' } as const;
const FACTS = {
  content_type: { type: 'string', enum: ['image/png', 'image/jpeg', 'image/webp'] },
  size_bytes: { type: 'integer' },
  width: { type: 'integer' },
  height: { type: 'integer' },
} as const;

/** The schema of an answer with a picture, as JSON and as bytes. */
export const PICTURE_ANSWER = {
  ...jsonAnswer({
    image: {
      type: 'object',
      required: Object.keys(FACTS),
      properties: { ...FACTS, base64: TEXT, asset_id: TEXT, url: TEXT, hash: TEXT },
    },
  }),
  ...Object.fromEntries(FACTS.content_type.enum.map((type) => [type, {}])),
};

/** The fields that choose how a picture is written and returned. */
export const PICTURE_FIELDS = {
  format: choice(['png', 'jpeg', 'webp'], 'file format of the picture'),
  quality: integer({ min: 1, max: 100, default: 90 }, 'of jpeg and webp'),
  output: choice(
    ['base64', 'asset', 'binary'],
    'base64: within the JSON answer; asset: stored, with its id in the answer; binary: as the body',
  ),
} as const;

/** Opens the picture of a field: upright, and its first frame only. */
export async function openInputPicture(files: Files, field: string): Promise<Sharp> {
  const bytes = files[field] ?? new Uint8Array();
  // `sharp` reports empty bytes as an error of its caller.
  if (bytes.length === 0) return throwUnreadable(field);
  // Loaded by the thread that computes, not by the server, which only reads the schemas.
  const sharp = loadSharp();
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
  const { data, info } = await image
    .toFormat(format, format === 'png' ? {} : { quality })
    .toBuffer({ resolveWithObject: true })
    .catch(() => throwUnreadable(field));
  const { width, height } = info;
  const contentType = `image/${info.format}`;
  return { kind: 'file', bytes: data, contentType, facts: { width, height } };
}

/** Throws the error of a picture that cannot be read. */
function throwUnreadable(field: string): never {
  throw new InputError(field, { type: 'image_load_error', msg: 'The picture cannot be read' });
}
