import type { Sharp } from 'sharp';

/** A way in which `/view` shows a picture other than its own bytes. */
export type Rendering =
  | { readonly as: 'rgb' | 'alpha' }
  | {
      readonly as: 'preview';
      readonly format: 'webp' | 'jpeg';
      readonly quality: number;
      readonly opaque: boolean;
    };

/** The new picture, or the reason in one sentence why there is none. */
export type Picture =
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

/** First bytes of the formats that are decoded; an SVG or a document never reaches the decoder. */
const SIGNATURES: readonly RegExp[] = [
  /^\x89PNG\r\n/,
  /^\xff\xd8\xff/,
  /^GIF8[79]a/,
  /^RIFF[^]{4}WEBP/,
  /^(II\*\0|MM\0\*)/,
  /^[^]{4}ftypavi[fs]/,
];

/**
 * Reads `preview` and `channel` as v1 does: unknown formats are WEBP, the last part of `preview` is
 * the quality when it is a number, and any channel with an `a` in it needs a format with alpha.
 * `undefined`: the file as it is. `null`: a quality no encoder has.
 */
export function parseRendering(query: URLSearchParams): Rendering | undefined | null {
  const channel = query.get('channel') ?? '';
  const preview = query.get('preview');
  if (preview !== null) return readPreview(preview, channel);
  if (channel === 'rgb') return { as: 'rgb' };
  return channel === 'a' || channel === 'alpha' ? { as: 'alpha' } : undefined;
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
export async function render(bytes: Buffer, rendering: Rendering): Promise<Picture> {
  return decode(bytes, async () => {
    const image = await drawRendering(bytes, rendering);
    const format = rendering.as === 'preview' ? rendering.format : 'png';
    return { ok: true, bytes: await image.toBuffer(), contentType: `image/${format}` };
  });
}

/** Runs a decoder on untrusted bytes; a failure is a reason, not an exception. */
export async function decode(bytes: Buffer, work: () => Promise<Picture>): Promise<Picture> {
  const head = bytes.toString('latin1', 0, 16);
  if (!SIGNATURES.some((signature) => signature.test(head))) {
    return { ok: false, reason: 'This is not a picture that can be shown.' };
  }
  try {
    return await work();
  } catch (error) {
    return { ok: false, reason: reasonOf(error instanceof Error ? error.message : '') };
  }
}

/** Opens untrusted bytes within the limits; colours stay as stored, profiles are not applied. */
export async function openPicture(bytes: Buffer): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  const options = { limitInputPixels: MAX_PIXELS, failOn: 'error', ignoreIcc: true } as const;
  return withTimeLimit(sharp(bytes, options)).toColourspace('srgb');
}

/** The picture as red, green, blue and alpha. */
export async function rgbaOf(bytes: Buffer): Promise<Pixels> {
  return pixelsOf((await openPicture(bytes)).ensureAlpha());
}

/** Width, height and bytes of a pipeline's pixels. */
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

/** A pipeline over pixels in memory. */
export async function fromPixels({ data, ...raw }: Pixels): Promise<Sharp> {
  const { default: sharp } = await import('sharp');
  return withTimeLimit(sharp(data, { raw }));
}

async function drawRendering(bytes: Buffer, rendering: Rendering): Promise<Sharp> {
  if (rendering.as === 'alpha') {
    const pixels = await fromPixels(await rgbaOf(bytes));
    return pixels.linear([0, 0, 0, 1], [0, 0, 0, 0]).png();
  }
  const picture = await openPicture(bytes);
  if (rendering.as !== 'preview') return picture.removeAlpha().png();
  const { format, quality, opaque } = rendering;
  return (opaque ? picture.removeAlpha() : picture).toFormat(format, { quality });
}

function withTimeLimit(pipeline: Sharp): Sharp {
  return pipeline.timeout({ seconds: MAX_SECONDS });
}

function reasonOf(message: string): string {
  if (/pixel limit/i.test(message)) return 'The picture has more pixels than are decoded here.';
  if (/timeout/i.test(message)) return 'The picture took too long to decode.';
  return 'The picture could not be decoded.';
}
