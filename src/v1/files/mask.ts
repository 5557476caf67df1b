import { type Json, isJsonObject, parseJson } from '../../protocol/json.ts';
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
  const ref = parseJsonOrUndefined(text);
  if (!isJsonObject(ref)) return undefined;
  const { filename, subfolder = '', type = 'output' } = ref;
  const isWellFormed =
    typeof filename === 'string' && typeof subfolder === 'string' && typeof type === 'string';
  return isWellFormed ? { filename, subfolder, type } : undefined;
}

/**
 * The original with its alpha replaced by the mask's; a mask without alpha makes it opaque. The
 * result is a PNG that keeps the original's text chunks. Nothing is resized.
 */
export async function composeMask(original: Buffer, mask: Buffer): Promise<Picture> {
  return decode(original, () => decode(mask, () => compose(original, mask)));
}

async function compose(original: Buffer, mask: Buffer): Promise<Picture> {
  const alphaChannel = await alphaOf(mask);
  const baseImage = await pixelsOf((await openPicture(original)).removeAlpha());
  if (baseImage.width !== alphaChannel.width || baseImage.height !== alphaChannel.height) {
    const [of, to] = [alphaChannel, baseImage].map(({ width, height }) => `${width}x${height}`);
    return {
      ok: false,
      reason: `The mask is ${of}, its original ${to}; they must be of one size.`,
    };
  }
  const { data, ...raw } = alphaChannel;
  const opaque = await fromPixels(baseImage);
  const composed = await opaque
    .joinChannel(data, { raw })
    .png({ compressionLevel: COMPRESSION_LEVEL })
    .toBuffer();
  return { ok: true, bytes: withTextChunksOf(original, composed), contentType: 'image/png' };
}

async function alphaOf(mask: Buffer): Promise<Pixels> {
  return pixelsOf((await fromPixels(await rgbaOf(mask))).extractChannel(3));
}

/** Text chunks are copied as they are, after the header, where v1 writes them. */
function withTextChunksOf(original: Buffer, composed: Buffer): Buffer {
  if (!original.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return composed;
  return Buffer.concat([
    composed.subarray(0, HEADER_END),
    ...textChunksOf(original),
    composed.subarray(HEADER_END),
  ]);
}

function textChunksOf(composed: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = PNG_SIGNATURE.length; at + 12 <= composed.length;) {
    const end = at + 12 + composed.readUInt32BE(at);
    if (end <= composed.length && TEXT_CHUNKS.has(composed.toString('latin1', at + 4, at + 8))) {
      chunks.push(composed.subarray(at, end));
    }
    at = end;
  }
  return chunks;
}

function parseJsonOrUndefined(text: string): Json | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
