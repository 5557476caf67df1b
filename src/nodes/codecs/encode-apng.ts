import type { Pixels, NodeContext } from '../node.ts';
import { writePng, type PngChunk } from './png-chunks.ts';
import { encodeChunks, textChunks, type MetadataText } from './encode-png.ts';

/** The most milliseconds that an APNG frame can last with a denominator of 1000. */
const MAX_SHORT = 0xffff;

type ApngFrame = { readonly pixels: readonly PngChunk[]; readonly durationMs: number };

const END: PngChunk = { type: 'IEND', data: new Uint8Array() };

/**
 * Encodes an animated PNG that repeats for ever. Its texts are in `comf` chunks behind the pixels,
 * as v1 writes them.
 */
export async function encodeApng(
  images: Pixels,
  context: NodeContext,
  options: {
    readonly durationMs: number;
    readonly compressionLevel: number;
    readonly texts: readonly MetadataText[];
  },
): Promise<Buffer> {
  const frames: ApngFrame[] = [];
  let header: PngChunk[] = [];
  for (let i = 0; i < images.batch; i++) {
    context.check();
    const chunks = await encodeChunks(images, i, options.compressionLevel);
    header = chunks.slice(0, 1);
    addFrame(frames, {
      pixels: chunks.filter(({ type }) => type === 'IDAT'),
      durationMs: options.durationMs,
    });
  }
  const texts = textChunks('comf', options.texts);
  return writePng([...header, ...animationChunks(images, frames), ...texts, END]);
}

/**
 * Adds a frame. As with v1's writer, a picture that equals the previous one makes that one last
 * longer.
 */
function addFrame(frames: ApngFrame[], frame: ApngFrame): void {
  const last = frames.at(-1);
  const bytes = ({ pixels }: ApngFrame): Buffer => Buffer.concat(pixels.map(({ data }) => data));
  if (!last || !bytes(last).equals(bytes(frame))) frames.push(frame);
  else frames[frames.length - 1] = { ...last, durationMs: last.durationMs + frame.durationMs };
}

/** Returns the animation chunks. As with v1's writer, a single picture is an ordinary PNG. */
function animationChunks(images: Pixels, frames: readonly ApngFrame[]): PngChunk[] {
  if (frames.length === 1) return frames.flatMap(({ pixels }) => pixels);
  let sequence = 0;
  const chunks: PngChunk[] = [{ type: 'acTL', data: integers(frames.length, 0) }];
  for (const [i, { pixels, durationMs }] of frames.entries()) {
    chunks.push(frameControl(images, sequence++, durationMs));
    for (const part of pixels) {
      chunks.push(
        i === 0 ? part : { type: 'fdAT', data: Buffer.concat([integers(sequence++), part.data]) },
      );
    }
  }
  return chunks;
}

function frameControl({ width, height }: Pixels, sequence: number, durationMs: number): PngChunk {
  const delay = Buffer.alloc(6);
  const long = durationMs > MAX_SHORT;
  delay.writeUInt16BE(long ? Math.round(durationMs / 1000) : durationMs, 0);
  delay.writeUInt16BE(long ? 1 : 1000, 2);
  return { type: 'fcTL', data: Buffer.concat([integers(sequence, width, height, 0, 0), delay]) };
}

function integers(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, i * 4);
  return bytes;
}
