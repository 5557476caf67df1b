/** Draws pictures. It runs on worker threads: no other module of the server imports it. */
import type { Sharp } from 'sharp';
import { Tinypool } from 'tinypool';
import { decodeBmp, isPng, pictureFormatOf, readPngChunks, writePng } from '../nodes/decoders.ts';
import { loadSharp } from '../nodes/load-sharp.ts';
import { type DrawnPicture, type Drawing, type Rendering, UNREADABLE } from './pictures.ts';

const sharp = loadSharp();
const MAX_SECONDS = 5;
/** v1's compression level for a picture with a mask. */
const COMPRESSION_LEVEL = 4;
const TEXT_CHUNKS = new Set(['tEXt', 'zTXt', 'iTXt']);

/** Returns the bytes of the new picture, which are moved and not copied; or why there are none. */
export async function drawOnThread(drawing: Drawing): Promise<Uint8Array | string> {
  const drawn = await drawPicture(drawing);
  // The memory of sharp's own buffers cannot be moved.
  return drawn.ok ? (Tinypool.move(new Uint8Array(drawn.bytes)) as Uint8Array) : drawn.reason;
}

/**
 * Draws a picture from untrusted bytes. The size never changes, only the first frame is used, and
 * colours stay as stored: profiles are not applied.
 */
export async function drawPicture({ how, files }: Drawing): Promise<DrawnPicture> {
  const [file = NO_BYTES, mask = NO_BYTES] = files;
  try {
    if (how.as === 'masked') return await compose(file, mask);
    return { ok: true, bytes: await render(await openPicture(file), how).toBuffer() };
  } catch (error) {
    return { ok: false, reason: reasonOf(error instanceof Error ? error.message : '') };
  }
}

const NO_BYTES = new Uint8Array();

function reasonOf(message: string): string {
  return /timeout/i.test(message) ? 'The picture took too long to decode.' : UNREADABLE;
}

type OpenPicture = {
  readonly image: Sharp;
  readonly width: number;
  readonly height: number;
  /**
   * True for red, green, blue and alpha. v1 shows no alpha of a palette, or of grey with alpha.
   */
  readonly hasAlphaBand: boolean;
};

async function openPicture(bytes: Uint8Array): Promise<OpenPicture> {
  if (pictureFormatOf(bytes) === 'bmp') return openBmp(bytes);
  const image = withTimeLimit(sharp(bytes, { failOn: 'error', ignoreIcc: true }));
  const { width, height, ...bands } = await image.metadata();
  return {
    image: image.toColourspace('srgb'),
    width,
    height,
    hasAlphaBand:
      bands.format === 'png'
        ? bytes[25] === PNG_WITH_ALPHA
        : bands.hasAlpha && bands.channels === 4 && bands.format !== 'gif',
  };
}

const PNG_WITH_ALPHA = 6;

async function openBmp(file: Uint8Array): Promise<OpenPicture> {
  const { width, height, channels, bytes } = await decodeBmp(file);
  const image = withTimeLimit(sharp(bytes, { raw: { width, height, channels } }));
  return { image: image.removeAlpha(), width, height, hasAlphaBand: false };
}

function withTimeLimit(pipeline: Sharp): Sharp {
  return pipeline.timeout({ seconds: MAX_SECONDS });
}

function render({ image, hasAlphaBand }: OpenPicture, rendering: Rendering): Sharp {
  if (rendering.as === 'preview') {
    const { format, quality, opaque } = rendering;
    return (opaque ? image.removeAlpha() : image).toFormat(format, { quality });
  }
  if (rendering.as === 'rgb') return image.removeAlpha().png();
  return (hasAlphaBand ? image : image.removeAlpha()).linear(0, 0).ensureAlpha().png();
}

/**
 * Returns the original with its alpha replaced by that of the mask; a mask without alpha makes it
 * opaque. The result is a PNG that keeps the original's text chunks. Nothing is resized.
 */
async function compose(file: Uint8Array, maskFile: Uint8Array): Promise<DrawnPicture> {
  const [original, mask] = [await openPicture(file), await openPicture(maskFile)];
  const { width, height } = original;
  if (mask.width !== width || mask.height !== height) {
    const sizes = `The mask is ${mask.width}x${mask.height}, its original ${width}x${height}`;
    return { ok: false, reason: `${sizes}; they must be of one size.` };
  }
  const rgb = await original.image.removeAlpha().raw().toBuffer({ resolveWithObject: true });
  const alpha = mask.image.ensureAlpha().extractChannel('alpha').toColourspace('b-w').raw();
  const composed = await withTimeLimit(sharp(rgb.data, { raw: rgb.info }))
    .joinChannel(await alpha.toBuffer(), { raw: { width, height, channels: 1 } })
    .png({ compressionLevel: COMPRESSION_LEVEL })
    .toBuffer();
  return { ok: true, bytes: withTextChunksOf(file, composed) };
}

/** Copies the text chunks behind the header, where v1 writes them. */
function withTextChunksOf(original: Uint8Array, composed: Buffer): Buffer {
  if (!isPng(original)) return composed;
  const texts = readPngChunks(original).filter(({ type }) => TEXT_CHUNKS.has(type));
  return writePng(readPngChunks(composed).toSpliced(1, 0, ...texts));
}
