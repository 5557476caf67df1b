import type { Sharp } from 'sharp';
import type { DialectRules } from '../../dialects/dialect.ts';
import { decodeBmp, decodeInks, pictureFormatOf } from '../../nodes/decoders.ts';

/** A way in which `/view` shows a picture other than its own bytes. */
export type Rendering =
  | { readonly as: 'rgb' | 'alpha' }
  | {
      readonly as: 'preview';
      readonly format: 'webp' | 'jpeg';
      readonly quality: number;
      readonly opaque: boolean;
    };

/** The new picture, or one sentence that says why there is none. */
export type RenderedPicture =
  | { readonly ok: true; readonly bytes: Buffer; readonly contentType: string }
  | { readonly ok: false; readonly reason: string };

/** Uncompressed pixels, 8 bits a channel. */
export type Pixels = {
  readonly data: Buffer;
  readonly width: number;
  readonly height: number;
  readonly channels: 1 | 2 | 3 | 4;
};

const MAX_PIXELS = 64 * 1024 * 1024;
const MAX_SECONDS = 5;
const DEFAULT_QUALITY = 90;

/**
 * Reads `preview` and `channel` as v1 does. Unknown formats are WEBP; the last part of `preview` is
 * the quality if it is a number; a channel with an `a` in its name needs a format with alpha.
 * `undefined`: the file is sent unchanged. `null`: no encoder has this quality.
 */
export function parseRendering(
  query: URLSearchParams,
  { alphaChannel }: Pick<DialectRules, 'alphaChannel'>,
): Rendering | undefined | null {
  const channel = query.get('channel') ?? '';
  const preview = query.get('preview');
  if (preview !== null) return readPreview(preview, channel);
  if (channel === 'rgb') return { as: 'rgb' };
  const isAlpha = channel === 'a' || (alphaChannel === 'a-or-alpha' && channel === 'alpha');
  return isAlpha ? { as: 'alpha' } : undefined;
}

function readPreview(preview: string, channel: string): Rendering | null {
  const parts = preview.split(';');
  const last = parts.at(-1) ?? '';
  const quality = /^\d+$/.test(last) ? Number(last) : DEFAULT_QUALITY;
  if (quality > 100) return null;
  const format = parts[0] === 'jpeg' && !channel.includes('a') ? 'jpeg' : 'webp';
  const opaque = format === 'jpeg' || channel === 'rgb';
  return { as: 'preview', format, quality: Math.max(quality, 1), opaque };
}

/** Renders the picture. The size never changes, and only the first frame is used. */
export async function render(bytes: Buffer, rendering: Rendering): Promise<RenderedPicture> {
  return decode(bytes, async () => {
    const image = await drawRendering(bytes, rendering);
    const format = rendering.as === 'preview' ? rendering.format : 'png';
    return { ok: true, bytes: await image.toBuffer(), contentType: `image/${format}` };
  });
}

/** Runs a decoder on untrusted bytes. A failure is returned as a reason, not thrown. */
export async function decode(
  bytes: Buffer,
  work: () => Promise<RenderedPicture>,
): Promise<RenderedPicture> {
  if (pictureFormatOf(bytes) === undefined)
    return { ok: false, reason: 'This is not a picture that can be shown.' };
  try {
    return await work();
  } catch (error) {
    return { ok: false, reason: reasonOf(error instanceof Error ? error.message : '') };
  }
}

/** Opens untrusted bytes within the limits. Colours stay as stored: profiles are not applied. */
export async function openPicture(bytes: Buffer): Promise<Sharp> {
  if (pictureFormatOf(bytes) === 'bmp') return openDecoded(await decodeBmp(bytes));
  const image = await openFile(bytes);
  const { space } = await image.metadata();
  if (space === 'cmyk') return openDecoded(await decodeInks(image));
  return image.toColourspace('srgb');
}

async function openFile(bytes: Buffer): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  const options = { limitInputPixels: MAX_PIXELS, failOn: 'error', ignoreIcc: true } as const;
  return withTimeLimit(sharp(bytes, options));
}

async function openDecoded(picture: Awaited<ReturnType<typeof decodeBmp>>): Promise<Sharp> {
  const { width, height, channels, bytes } = picture;
  const pixels = await fromPixels({ data: Buffer.from(bytes), width, height, channels });
  return picture.hasAlpha ? pixels : pixels.removeAlpha();
}

/** Returns the picture as red, green, blue and alpha. */
export async function rgbaOf(bytes: Buffer): Promise<Pixels> {
  return pixelsOf((await openPicture(bytes)).ensureAlpha());
}

/** Returns the width, height and bytes of a pipeline's pixels. */
export async function pixelsOf(pipeline: Sharp): Promise<Pixels> {
  const { data, info } = await pipeline
    .raw({ depth: 'uchar' })
    .toBuffer({ resolveWithObject: true });
  return {
    data,
    width: info.width,
    height: info.height,
    channels: info.channels as Pixels['channels'],
  };
}

/** Returns a pipeline over pixels in memory. */
export async function fromPixels({ data, ...raw }: Pixels): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  return withTimeLimit(sharp(data, { raw }));
}

async function drawRendering(bytes: Buffer, rendering: Rendering): Promise<Sharp> {
  if (rendering.as === 'alpha') {
    const rgba = await rgbaOf(bytes);
    const pixels = await fromPixels((await hasAlphaBand(bytes)) ? rgba : madeOpaque(rgba));
    return pixels.linear([0, 0, 0, 1], [0, 0, 0, 0]).png();
  }
  const picture = await openPicture(bytes);
  if (rendering.as !== 'preview') return picture.removeAlpha().png();
  const { format, quality, opaque } = rendering;
  return (opaque ? picture.removeAlpha() : picture).toFormat(format, { quality });
}

const PNG_WITH_ALPHA = 6;

/** True for red, green, blue and alpha. v1 shows no alpha of a palette, or of grey with alpha. */
async function hasAlphaBand(bytes: Buffer): Promise<boolean> {
  const { format, hasAlpha, channels } = await (await openPicture(bytes)).metadata();
  if (format === 'png') return bytes[25] === PNG_WITH_ALPHA;
  return hasAlpha && channels === 4 && format !== 'gif';
}

function madeOpaque({ data, ...size }: Pixels): Pixels {
  const shown = Buffer.from(data);
  for (let i = 3; i < shown.length; i += 4) shown[i] = 255;
  return { ...size, data: shown };
}

function withTimeLimit(pipeline: Sharp): Sharp {
  return pipeline.timeout({ seconds: MAX_SECONDS });
}

function reasonOf(message: string): string {
  if (/pixel limit/i.test(message)) return 'The picture has more pixels than are decoded here.';
  if (/timeout/i.test(message)) return 'The picture took too long to decode.';
  return 'The picture could not be decoded.';
}
