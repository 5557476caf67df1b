import { loadSharp } from '../../nodes/load-sharp.ts';
import type { JsonObject } from '../../protocol/json.ts';
import { choice, inputSchema, integer } from './file-schema.ts';
import { PICTURE_FIELDS, PICTURE_ANSWER, writePicture } from './picture.ts';
import type { ThreadModel } from './thread-model.ts';

const MAX_SIDE = 2048;

/** A value from 0 to 1 for each point of the plane. */
type Field = (x: number, y: number) => number;

/** Returns a number from 0 to 1 for whole numbers, the same on every machine. */
function hashed(x: number, y: number, seed: number): number {
  let h = seed ^ Math.imul(x, 0x27d4eb2d) ^ Math.imul(y, 0x165667b1);
  h = Math.imul(h ^ (h >>> 15), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 0xffffffff;
}

const smooth = (t: number): number => t * t * (3 - 2 * t);

function valueNoise(seed: number): Field {
  return (x, y) => {
    const [left, top] = [Math.floor(x), Math.floor(y)];
    const [u, v] = [smooth(x - left), smooth(y - top)];
    const above = hashed(left, top, seed) * (1 - u) + hashed(left + 1, top, seed) * u;
    const below = hashed(left, top + 1, seed) * (1 - u) + hashed(left + 1, top + 1, seed) * u;
    return above * (1 - v) + below * v;
  };
}

/** Adds octaves of noise, each twice as fine and half as strong. */
function fractal(seed: number, octaves: number): Field {
  const layers = Array.from({ length: octaves }, (_, i) => valueNoise(seed + i * 0x9e3779b1));
  return (x, y) => {
    let [sum, total] = [0, 0];
    for (const [i, layer] of layers.entries()) {
      sum += layer(x * 2 ** i, y * 2 ** i) / 2 ** i;
      total += 1 / 2 ** i;
    }
    return sum / total;
  };
}

/**
 * Makes stripes that noise bends. They are a triangle wave, since sines differ between machines.
 */
function marble(seed: number, octaves: number): Field {
  const bend = fractal(seed, octaves);
  return (x, y) => {
    const phase = (x + 4 * bend(x, y)) % 2;
    return Math.abs(1 - phase);
  };
}

const STYLES: { readonly [style: string]: typeof fractal } = { fractal, marble };

function colour(text: string): readonly [number, number, number] {
  const value = Number.parseInt(text.slice(1), 16);
  return [value >> 16, (value >> 8) & 255, value & 255];
}

function paint(input: JsonObject): Buffer {
  const [width, height] = [input.width as number, input.height as number];
  const [seed, scale] = [input.seed as number, input.scale as number];
  const folded = (seed % 2 ** 32) ^ Math.floor(seed / 2 ** 32);
  const style = STYLES[input.style as string] ?? fractal;
  const field = style(folded, input.octaves as number);
  const [from, to] = [colour(input.from as string), colour(input.to as string)];
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++, at += 3) {
      const level = field(x / scale, y / scale);
      for (const c of [0, 1, 2] as const)
        pixels[at + c] = from[c] + (to[c] - from[c]) * level + 0.5;
    }
  }
  return pixels;
}

const HEX = { type: 'string', pattern: '^#[0-9a-fA-F]{6}$' } as const;

export const proceduralImage: ThreadModel = {
  model: 'procedural-image',
  title: 'Paint a seeded pattern',
  description: 'Noise or marble by formula: no diffusion. The same seed, the same picture.',
  input: inputSchema({
    style: choice(Object.keys(STYLES), 'the pattern'),
    width: integer({ min: 1, max: MAX_SIDE, default: 512 }, 'in pixels'),
    height: integer({ min: 1, max: MAX_SIDE, default: 512 }, 'in pixels'),
    seed: integer({ min: 0, max: Number.MAX_SAFE_INTEGER, default: 0 }, 'chooses the pattern'),
    scale: integer({ min: 1, max: MAX_SIDE, default: 64 }, 'size of the largest shapes in pixels'),
    octaves: integer({ min: 1, max: 8, default: 5 }, 'layers of detail; 1 is plain noise'),
    from: { ...HEX, default: '#000000', description: 'colour of the lowest value' },
    to: { ...HEX, default: '#ffffff', description: 'colour of the highest value' },
    ...PICTURE_FIELDS,
  }),
  output: PICTURE_ANSWER,
  async compute(input) {
    const [width, height] = [input.width as number, input.height as number];
    const sharp = loadSharp();
    const image = sharp(paint(input), { raw: { width, height, channels: 3 } });
    return await writePicture(image, input, 'style');
  },
};
