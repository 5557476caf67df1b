import { type Json, isJsonObject, parseJson } from '../wire/json.ts';
import {
  type Picture,
  type Pixels,
  decode,
  fromPixels,
  openPicture,
  pixelsOf,
  rgbaOf,
} from './render.ts';

/** The picture a mask belongs to, as `original_ref` names it; `type` is whatever was sent. */
export type OriginalRef = {
  readonly filename: string;
  readonly subfolder: string;
  readonly type: string;
};

/** v1's own setting for these files. */
const COMPRESSION_LEVEL = 4;
const PNG_SIGNATURE = Buffer.from('89504e470d0a1a0a', 'hex');
const TEXT_CHUNKS = new Set(['tEXt', 'zTXt', 'iTXt']);
/** Signature, then the header chunk: length, name, 13 bytes, checksum. */
const HEADER_END = 8 + 4 + 4 + 13 + 4;

/** Reads `original_ref`; a folder it leaves out is the root, a type it leaves out is `output`. */
export function readOriginalRef(text: string): OriginalRef | undefined {
  const ref = jsonOf(text);
  if (!isJsonObject(ref)) return undefined;
  const { filename, subfolder = '', type = 'output' } = ref;
  const wellFormed =
    typeof filename === 'string' && typeof subfolder === 'string' && typeof type === 'string';
  return wellFormed ? { filename, subfolder, type } : undefined;
}

/**
 * The original with its alpha replaced by the mask's; a mask without alpha makes it opaque. The
 * result is a PNG that keeps the original's text chunks. Nothing is resized.
 */
export async function composeMask(original: Buffer, mask: Buffer): Promise<Picture> {
  return decode(original, () => decode(mask, () => compose(original, mask)));
}

async function compose(original: Buffer, mask: Buffer): Promise<Picture> {
  const alpha = await alphaOf(mask);
  const picture = await pixelsOf((await openPicture(original)).removeAlpha());
  if (picture.width !== alpha.width || picture.height !== alpha.height) {
    const [of, to] = [alpha, picture].map(({ width, height }) => `${width}x${height}`);
    return {
      ok: false,
      reason: `The mask is ${of}, its original ${to}; they must be of one size.`,
    };
  }
  const { data, ...raw } = alpha;
  const opaque = await fromPixels(picture);
  const png = await opaque
    .joinChannel(data, { raw })
    .png({ compressionLevel: COMPRESSION_LEVEL })
    .toBuffer();
  return { ok: true, bytes: withTextChunksOf(original, png), contentType: 'image/png' };
}

async function alphaOf(mask: Buffer): Promise<Pixels> {
  return pixelsOf((await fromPixels(await rgbaOf(mask))).extractChannel(3));
}

/** Text chunks are copied as they are, after the header, where v1 writes them. */
function withTextChunksOf(original: Buffer, png: Buffer): Buffer {
  if (!original.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return png;
  return Buffer.concat([
    png.subarray(0, HEADER_END),
    ...textChunksOf(original),
    png.subarray(HEADER_END),
  ]);
}

function textChunksOf(png: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = PNG_SIGNATURE.length; at + 12 <= png.length;) {
    const end = at + 12 + png.readUInt32BE(at);
    if (end <= png.length && TEXT_CHUNKS.has(png.toString('latin1', at + 4, at + 8))) {
      chunks.push(png.subarray(at, end));
    }
    at = end;
  }
  return chunks;
}

function jsonOf(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
