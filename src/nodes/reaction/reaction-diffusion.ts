import { loadSharp } from '../load-sharp.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LosslessNumber } from '../../protocol/json.ts';
import { fail, type Pixels, type NodeContext, type NodeDef } from '../node.ts';
import { emptyField, type Field, type Rates, react, addSpots } from './field.ts';
import { newPixels, roundHalfEven, toBytes } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

/** The colours from empty to fully grown: night blue, violet, teal, sand, cream. */
const PALETTE = [
  [0.043, 0.047, 0.145],
  [0.208, 0.141, 0.431],
  [0.086, 0.443, 0.541],
  [0.447, 0.741, 0.541],
  [0.953, 0.831, 0.478],
  [0.996, 0.961, 0.878],
] as const;

/** A concentration that few patterns exceed. It gets the last colour. */
const FULLY_GROWN = 0.36;

/** Colours the picture by the concentration at each place. */
const paintField = (context: NodeContext, { width, height, grown }: Field, image: Pixels): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    for (let x = 0; x < width; x++) {
      const level = grown[(y + 1) * (width + 2) + x + 1] as number;
      paintPixel(image.data, (y * width + x) * 3, level / FULLY_GROWN);
    }
  }
};

const paintPixel = (pixels: Float32Array, at: number, share: number): void => {
  const place = Math.min(1, share) * (PALETTE.length - 1);
  const stop = Math.min(PALETTE.length - 2, Math.floor(place));
  const [low, high] = [PALETTE[stop] ?? PALETTE[0], PALETTE[stop + 1] ?? PALETTE[0]];
  for (let c = 0; c < 3; c++) {
    const dark = low[c] as number;
    pixels[at + c] = dark + ((high[c] as number) - dark) * (place - stop);
  }
};

/** The side of the box into which v1 scales previews, up as well as down. */
const PREVIEW_BOX = 512;

/** Returns the first picture as a preview, as v1 makes it. */
const previewOf = async (image: Pixels): Promise<Uint8Array> => {
  const sharp = loadSharp();
  const { width, height } = image;
  const factor = PREVIEW_BOX / Math.max(width, height);
  return await sharp(toBytes(image, 0), { raw: { width, height, channels: 3 } })
    .resize({
      width: Math.max(1, roundHalfEven(width * factor)),
      height: Math.max(1, roundHalfEven(height * factor)),
      fit: 'fill',
      kernel: 'linear',
    })
    .jpeg({ quality: 95 })
    .toBuffer();
};

const GOLDEN_GAMMA = 0x9e3779b97f4a7c15n;

/**
 * SplitMix64 (Steele, Lea, Flood 2014). Every one of the 2^64 seeds starts a sequence of its own,
 * evenly spread from 0 up to, but not including, 1.
 * @internal
 */
export const splitMix64 = (seed: bigint): (() => number) => {
  let state = BigInt.asUintN(64, seed);
  return () => {
    state = BigInt.asUintN(64, state + GOLDEN_GAMMA);
    let mixed = BigInt.asUintN(64, (state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    // A double can hold the upper 53 bits.
    return Number((mixed ^ (mixed >> 31n)) >> 11n) / 2 ** 53;
  };
};

/**
 * The time steps of the simulation in one step of the node. Even, so that a step ends in the field
 * in which it began.
 */
const TURNS_PER_STEP = 16;

/** Four previews a second are enough to watch, and each has to be encoded and sent. */
const PREVIEW_INTERVAL_MS = 250;

const SIDE = ['INT', { default: 256, min: 64, max: 2048, step: 8 }] as const;

const SEED = {
  default: 0,
  min: 0,
  max: new LosslessNumber('18446744073709551615'),
  control_after_generate: true,
};

/**
 * A generator that behaves like a sampler: a picture that grows step by step from a seed. `now` is
 * in milliseconds and decides which steps have a preview.
 * @internal
 */
export const createReactionDiffusion = (now: () => number): NodeDef =>
  typedNode({
    name: 'ReactionDiffusion',
    displayName: 'Reaction–Diffusion',
    description:
      'Grows a Gray–Scott pattern from a seed, step by step, with previews. Feed and kill choose the kind of pattern.',
    category: 'holdover',
    pythonModule: 'holdover',
    required: {
      width: SIDE,
      height: SIDE,
      seed: ['INT', SEED],
      steps: ['INT', { default: 100, min: 1, max: 10000 }],
      feed: ['FLOAT', { default: 0.055, min: 0, max: 0.1, step: 0.001 }],
      kill: ['FLOAT', { default: 0.062, min: 0, max: 0.1, step: 0.001 }],
    },
    outputs: [{ type: 'IMAGE' }],
    async run({ width, height, steps, seed, ...rates }, context, given) {
      for (const [name, value] of Object.entries({ width, height, steps })) {
        if (value < 1) return fail('ValueError', `${name} must be at least 1, not ${value}`);
      }
      const field = emptyField(context, { width, height });
      // All 64 bits of the seed count. A number that left the range through a link wraps around.
      const whole = typeof given['seed'] === 'bigint' ? given['seed'] : BigInt(seed);
      addSpots(field, splitMix64(whole));
      return { outputs: [await grow(context, field, { rates, steps, now })] };
    },
  });

type Growth = { readonly rates: Rates; readonly steps: number; readonly now: () => number };

const grow = async (
  context: NodeContext,
  field: Field,
  { rates, steps, now }: Growth,
): Promise<Pixels> => {
  const { width, height } = field;
  const spare = emptyField(context, field);
  const image = newPixels(context, { kind: 'image', width, height, batch: 1, channels: 3 });
  let lastPreviewAtMs = now();
  for (let step = 1; step <= steps; step++) {
    for (let turn = 0; turn < TURNS_PER_STEP; turn += 2) {
      react(context, field, spare, rates);
      react(context, spare, field, rates);
    }
    // The last preview stays on the node in a front end, so it shows the finished picture.
    if (now() - lastPreviewAtMs >= PREVIEW_INTERVAL_MS || step === steps) {
      lastPreviewAtMs = now();
      paintField(context, field, image);
      context.preview(await previewOf(image), 'image/jpeg', 'sampler');
    }
    context.progress(step, steps);
    // A cancellation arrives between two turns of the event loop.
    await nextTurn();
  }
  return image;
};

/** The nodes that make pictures from numbers only. */
export const GENERATOR_NODES: readonly NodeDef[] = [
  createReactionDiffusion(() => performance.now()),
];
