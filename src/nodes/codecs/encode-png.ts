import { loadSharp } from '../load-sharp.ts';
import { pythonJson } from '../../protocol/python-json.ts';
import { type Pixels, type NodeContext, fail } from '../node.ts';
import { readPngChunks, writePng, type PngChunk } from './png-chunks.ts';
import { toBytes } from '../tensor.ts';

/** One text in a saved file: the prompt, or an entry of `extra_pnginfo`. */
export type MetadataText = { readonly key: string; readonly text: string };

/** The chunks that are kept. sharp adds a resolution that v1 does not write. */
const KEPT_CHUNKS: readonly string[] = ['IHDR', 'IDAT', 'IEND'];

/**
 * Returns v1's metadata for every saved file, in its order: the prompt, then each `extra_pnginfo`
 * entry.
 */
export function metadataTexts(context: NodeContext): MetadataText[] {
  const prompt = context.promptText === null ? [] : [{ key: 'prompt', text: context.promptText }];
  const extra = Object.entries(context.extraPngInfo ?? {});
  return [...prompt, ...extra.map(([key, value]) => ({ key, text: pythonJson(value) }))];
}

/** Encodes one picture of a batch as a PNG file, with `tEXt` chunks before the pixels. */
export async function encodePng(
  images: Pixels,
  index: number,
  options: { readonly compressionLevel: number; readonly texts: readonly MetadataText[] },
): Promise<Buffer> {
  const [header, ...rest] = await encodeChunks(images, index, options.compressionLevel);
  return writePng([header as PngChunk, ...textChunks('tEXt', options.texts), ...rest]);
}

/** Returns header, pixels and end of one picture of a batch. */
export async function encodeChunks(
  images: Pixels,
  index: number,
  compressionLevel: number,
): Promise<PngChunk[]> {
  const { width, height } = images;
  const raw = { width, height, channels: savedChannels(images) };
  const bytes = toBytes(images, index);
  const sharp = loadSharp();
  const picture = sharp(bytes, { raw, limitInputPixels: false }).toColourspace(
    raw.channels === 2 ? 'b-w' : 'srgb',
  );
  const png = picture.png({ compressionLevel, adaptiveFiltering: true });
  return readPngChunks(await png.toBuffer()).filter(({ type }) => KEPT_CHUNKS.includes(type));
}

/** Returns the pixel layout for saving. v1 fails on the same layouts. */
export function savedChannels({ channels, data }: Pixels): 2 | 3 | 4 {
  if (data.length === 0) return fail('ValueError', 'cannot write empty image');
  if (channels === 2 || channels === 3 || channels === 4) return channels;
  return fail('TypeError', `Cannot handle this data type: (1, 1, ${channels}), |u1`);
}

/** Returns chunks with a key, a zero byte and a text each, as in `tEXt`. */
export function textChunks(type: string, texts: readonly MetadataText[]): PngChunk[] {
  return texts.map(({ key, text }) => ({
    type,
    data: Buffer.from(`${latin1Key(key)}\0${text}`, 'latin1'),
  }));
}

/** Returns a keyword of a PNG text chunk. v1 fails on the same keywords. */
function latin1Key(key: string): string {
  const kept = Buffer.from(key, 'latin1').toString('latin1') === key && !key.includes('\0');
  if (kept) return key;
  return fail('UnicodeEncodeError', `extra_pnginfo has a key that a PNG file cannot hold: ${key}`);
}
