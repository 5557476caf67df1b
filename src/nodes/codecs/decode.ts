import { loadSharp } from '../load-sharp.ts';
import {
  bmpPixels,
  decodeBmp,
  type DecodedPicture,
  decodePages,
  decodeStill,
  pixelsWith,
  refuseTooManyPixels,
} from './decode-still.ts';
import { NodeFailure, OutOfMemory } from '../node.ts';
import { isPng, readPngChunks, viewOf, writePng, type PngChunk } from './png-chunks.ts';

/** An image file and the name its failures mention. */
type ImageFile = { readonly name: string; readonly bytes: Uint8Array };

type Format = 'png' | 'jpeg' | 'webp' | 'gif' | 'bmp' | 'tiff' | 'avif';

/**
 * The formats are recognised by content, never by name. SVG is left out on purpose: v1 does not
 * accept it as an image.
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

/** Returns the format of a picture that can be decoded. A document or an SVG has none. */
export function pictureFormatOf(bytes: Uint8Array): Format | undefined {
  const head = Buffer.from(bytes.subarray(0, 16)).toString('latin1');
  return SIGNATURES.find(([, pattern]) => pattern.test(head))?.[0];
}

/**
 * Returns the number of pixels of a file's first picture, as its header says. Throws when there is
 * none.
 */
export async function countPixels(bytes: Uint8Array): Promise<number> {
  if (pictureFormatOf(bytes) === 'bmp') return bmpPixels(bytes);
  const sharp = loadSharp();
  const { width, height } = await sharp(bytes, { limitInputPixels: false }).metadata();
  return width * height;
}

/** Decodes every frame of a file in order, those of animations composed; a still file has one. */
export async function decodeFrames({ name, bytes }: ImageFile): Promise<readonly DecodedPicture[]> {
  const format = pictureFormatOf(bytes);
  if (format === undefined) throw unidentified(name);
  try {
    if (format === 'bmp') return [await decodeBmp(bytes)];
    if (format === 'png' && isApng(bytes)) return await decodeApng(bytes);
    if (format === 'gif' || format === 'webp') return await decodeAnimation(bytes);
    return [await decodeStill(bytes)];
  } catch (cause) {
    throw cause instanceof OutOfMemory ? cause : unidentified(name, { cause });
  }
}

async function decodeAnimation(bytes: Uint8Array): Promise<readonly DecodedPicture[]> {
  const sharp = loadSharp();
  const { pages = 1 } = await sharp(bytes).metadata();
  return pages > 1 ? decodePages(bytes) : [await decodeStill(bytes)];
}

/** Returns v1's error for a file that is not an image. */
function unidentified(name: string, options?: ErrorOptions): NodeFailure {
  const message = `cannot identify image file '${name}'`;
  return new NodeFailure('PIL.UnidentifiedImageError', message, options);
}

/** How a frame is drawn onto the canvas: an fcTL chunk, with the frame's own image data. */
type Frame = {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly top: number;
  readonly dispose: number;
  readonly blend: number;
  readonly parts: Uint8Array[];
};

/** A frame with the third rule, 2, leaves the canvas as it was before. */
const DISPOSE = { none: 0, background: 1 } as const;
const BLEND_OVER = 1;

/** True for an animated PNG file. */
function isApng(bytes: Uint8Array): boolean {
  return isPng(bytes) && readPngChunks(bytes).some(({ type }) => type === 'acTL');
}

/** Returns the composed frames of an animated PNG. sharp sees only its first picture. */
async function decodeApng(bytes: Uint8Array): Promise<readonly DecodedPicture[]> {
  const chunks = readPngChunks(bytes);
  const header = chunks[0]?.data ?? new Uint8Array();
  const { width, height } = sizeAt(header, 0);
  const frames = readFrames(chunks);
  if (frames.length === 0) return [await decodeStill(bytes)];
  // A frame may be larger than the canvas.
  const pixels = frames.map((frame) => Math.max(width * height, frame.width * frame.height));
  refuseTooManyPixels(pixels.reduce((sum, ofFrame) => sum + ofFrame, 0));
  const shared = chunks.filter(({ type }) => type === 'PLTE' || type === 'tRNS');
  let canvas: Canvas = { width, height, rgba: new Uint8Array(width * height * 4) };
  const pictures: DecodedPicture[] = [];
  for (const frame of frames) {
    const source = await decodeStill(frameFile(header, shared, frame));
    const shown = drawOver(canvas, frame, pixelsWith(4, source));
    pictures.push({ width, height, hasAlpha: source.hasAlpha, ...pixelsOf(shown, source) });
    if (frame.dispose === DISPOSE.none) canvas = shown;
    if (frame.dispose === DISPOSE.background) canvas = cleared(shown, frame);
  }
  return pictures;
}

/**
 * Reads the frames. An IDAT before the first fcTL is not a frame, but the still picture for viewers
 * without animation.
 */
function readFrames(chunks: readonly PngChunk[]): Frame[] {
  const frames: Frame[] = [];
  for (const { type, data } of chunks) {
    if (type === 'fcTL') frames.push(readControl(data));
    else if (type === 'IDAT') frames.at(-1)?.parts.push(data);
    else if (type === 'fdAT') frames.at(-1)?.parts.push(data.subarray(4));
  }
  return frames.filter(({ parts }) => parts.length > 0);
}

function readControl(data: Uint8Array): Frame {
  const view = viewOf(data);
  return {
    ...sizeAt(data, 4),
    left: view.getUint32(12),
    top: view.getUint32(16),
    dispose: view.getUint8(24),
    blend: view.getUint8(25),
    parts: [],
  };
}

function sizeAt(data: Uint8Array, offset: number): { width: number; height: number } {
  const view = viewOf(data);
  return { width: view.getUint32(offset), height: view.getUint32(offset + 4) };
}

/** Returns the frame as a PNG file of its own, so that the ordinary decoder can read it. */
function frameFile(header: Uint8Array, shared: readonly PngChunk[], frame: Frame): Uint8Array {
  const own = Buffer.from(header);
  own.writeUInt32BE(frame.width, 0);
  own.writeUInt32BE(frame.height, 4);
  const data = { type: 'IDAT', data: Buffer.concat(frame.parts) };
  return writePng([
    { type: 'IHDR', data: own },
    ...shared,
    data,
    { type: 'IEND', data: Buffer.alloc(0) },
  ]);
}

type Canvas = { readonly width: number; readonly height: number; readonly rgba: Uint8Array };

/** Lays a frame over the canvas, or puts it in the place of what was there, alpha included. */
function drawOver({ width, height, rgba }: Canvas, frame: Frame, source: Uint8Array): Canvas {
  if (frame.left + frame.width > width || frame.top + frame.height > height)
    throw new RangeError('a frame leaves the canvas');
  const drawn = Uint8Array.from(rgba);
  for (let from = 0; from < source.length; from += 4) {
    const pixel = from / 4;
    const line = frame.top + Math.floor(pixel / frame.width);
    const to = (line * width + frame.left + (pixel % frame.width)) * 4;
    const alpha = source[from + 3] as number;
    const above = frame.blend === BLEND_OVER ? alpha : 255;
    const below = ((255 - above) * (drawn[to + 3] as number)) / 255;
    if (above === 0) continue;
    for (let c = 0; c < 3; c++) {
      const sum = (source[from + c] as number) * above + (drawn[to + c] as number) * below;
      drawn[to + c] = Math.round(sum / (above + below));
    }
    drawn[to + 3] = Math.round(alpha + below);
  }
  return { width, height, rgba: drawn };
}

/** Makes the area of a frame transparent. */
function cleared({ width, height, rgba }: Canvas, frame: Frame): Canvas {
  const result = Uint8Array.from(rgba);
  for (let y = 0; y < frame.height; y++) {
    const at = ((frame.top + y) * width + frame.left) * 4;
    result.fill(0, at, at + frame.width * 4);
  }
  return { width, height, rgba: result };
}

/** Returns no alpha for a picture without an alpha channel: areas that no frame has covered are black. */
function pixelsOf({ rgba }: Canvas, { hasAlpha }: DecodedPicture) {
  const channels = hasAlpha ? 4 : 3;
  return { channels, bytes: pixelsWith(channels, { channels: 4, bytes: rgba }) } as const;
}
