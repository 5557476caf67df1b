import { type Bytes, type Taps, lanczosTaps } from './lanczos-taps.ts';
import type { LoopContext, Size } from '../tensor.ts';
import { PIECE, type PixelMemory, layOut, openPixels } from '../pixels.ts';

const MAX_CHANNELS = 4;
/** The number of weights that are used at a time. */
const STEP = 4;

/** Scales one picture as `scalePlainly` does. `undefined`: that function has to do it. */
export const scaleWithVectors = (
  context: LoopContext,
  source: Bytes,
  size: Size,
): Bytes | undefined => {
  const { channels } = source;
  if (channels > MAX_CHANNELS) return undefined;
  const length = size.width * channels;
  const across = tapsOf(source.width, size.width);
  const down = tapsOf(source.height, size.height);
  const weights = across ? inSteps(across) : new Int32Array();
  const { at, end } = layOut({
    /** A row of the source. */
    line: (source.width + STEP) * channels,
    /** The picture at its new width. */
    wide: source.height * length,
    /** A row of the target. */
    row: length,
    masks: STEP * PIECE,
    firsts: across?.first.byteLength ?? 0,
    across: weights.byteLength,
    down: down?.weights.byteLength ?? 0,
  });
  const memory = openPixels(end);
  if (!memory) return undefined;
  context.reserve(source.height * length + size.height * length);
  const work: Work = { ...memory, context, at };
  if (across) widen(work, source, { first: across.first, weights, width: size.width });
  else memory.bytes.set(source.data, at.wide);
  const data = down
    ? lower(work, down, { length, height: size.height })
    : memory.bytes.slice(at.wide, at.wide + source.height * length);
  return { ...size, channels, data };
};

type Place = 'line' | 'wide' | 'row' | 'masks' | 'firsts' | 'across' | 'down';
type Work = PixelMemory & {
  readonly context: LoopContext;
  readonly at: Readonly<Record<Place, number>>;
};

const tapsOf = (source: number, target: number): Taps | undefined =>
  source === target ? undefined : lanczosTaps(source, target);

/** Returns the weights of each position, filled with zeros to a whole number of steps. */
const inSteps = ({ weights, reach, first }: Taps): Int32Array => {
  const padded = Math.ceil(reach / STEP) * STEP;
  const result = new Int32Array(first.length * padded);
  for (let i = 0; i < first.length; i++) {
    result.set(weights.subarray(i * reach, (i + 1) * reach), i * padded);
  }
  return result;
};

/** Returns where the channels of each of four pixels are in sixteen bytes; zero for none. */
const masksOf = (channels: number): Uint8Array =>
  Uint8Array.from({ length: STEP * PIECE }, (_unused, i) => {
    const [pixel, lane] = [Math.floor(i / PIECE), i % PIECE];
    return lane % 4 === 0 && lane / 4 < channels ? pixel * channels + lane / 4 : 0x80;
  });

const widen = (
  { context, code, bytes, at }: Work,
  { data, width, height, channels }: Bytes,
  to: Pick<Taps, 'first' | 'weights'> & { readonly width: number },
): void => {
  bytes.set(masksOf(channels), at.masks);
  bytes.set(bytesOf(to.first), at.firsts);
  bytes.set(bytesOf(to.weights), at.across);
  const reach = to.weights.length / to.width;
  const length = width * channels;
  for (let y = 0; y < height; y++) {
    context.check();
    bytes.set(data.subarray(y * length, (y + 1) * length), at.line);
    const target = at.wide + y * to.width * channels;
    code.line(at.line, target, at.firsts, at.across, reach, channels, to.width, at.masks);
  }
};

const lower = (
  { context, code, bytes, at }: Work,
  { first, weights, reach }: Taps,
  { length, height }: { readonly length: number; readonly height: number },
): Uint8Array => {
  bytes.set(bytesOf(weights), at.down);
  const data = new Uint8Array(length * height);
  for (let y = 0; y < height; y++) {
    context.check();
    const from = at.wide + (first[y] as number) * length;
    code.columns(from, at.row, at.down + y * reach * 4, reach, length);
    data.set(bytes.subarray(at.row, at.row + length), y * length);
  }
  return data;
};

const bytesOf = ({ buffer, byteOffset, byteLength }: Int32Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);
