import { setImmediate as nextTurn } from 'node:timers/promises';
import { LosslessNumber } from '../../protocol/json.ts';
import { NodeFailure } from '../node.ts';
import type { ImageValue, Inputs, NodeContext, NodeDef } from '../node.ts';
import { emptyField, type Field, type Rates, react, sowSpots } from './field.ts';
import { paintField, previewOf } from './picture.ts';
import { splitMix64 } from './random.ts';
import { floatInput, intInput, newImage } from '../tensor.ts';

/** Time steps of the simulation in one step of the node; even, so that a step ends in the field it began with. */
const TURNS_PER_STEP = 16;

/** Four previews a second are enough to watch; each costs a picture to encode and to send. */
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
export const createReactionDiffusion = (now: () => number): NodeDef => ({
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
  run: async (inputs, context) => {
    const size = { width: atLeastOne(inputs, 'width'), height: atLeastOne(inputs, 'height') };
    const steps = atLeastOne(inputs, 'steps');
    const rates = { feed: floatInput(inputs, 'feed'), kill: floatInput(inputs, 'kill') };
    const field = emptyField(context, size);
    const spare = emptyField(context, size);
    sowSpots(field, splitMix64(seedInput(inputs)));
    const image = newImage(context, { ...size, batch: 1, channels: 3 });
    await grow(context, { field, spare, rates, steps, image, now });
    return { outputs: [image] };
  },
});

type Growth = {
  readonly field: Field;
  readonly spare: Field;
  readonly rates: Rates;
  readonly steps: number;
  readonly image: ImageValue;
  readonly now: () => number;
};

const grow = async (context: NodeContext, growth: Growth): Promise<void> => {
  const { field, steps, image, now } = growth;
  let lastPreviewAtMs = now();
  for (let step = 1; step <= steps; step++) {
    context.check();
    growStep(context, growth);
    // The last one stays on the node in a front end: it shows the finished picture.
    if (now() - lastPreviewAtMs >= PREVIEW_INTERVAL_MS || step === steps) {
      lastPreviewAtMs = now();
      paintField(context, field, image);
      context.preview(await previewOf(image), 'image/jpeg', 'sampler');
    }
    context.progress(step, steps);
    // A cancellation arrives between two turns of the event loop.
    await nextTurn();
  }
};

const growStep = (context: NodeContext, { field, spare, rates }: Growth): void => {
  for (let turn = 0; turn < TURNS_PER_STEP; turn += 2) {
    react(context, field, { to: spare, rates });
    react(context, spare, { to: field, rates });
  }
};

const atLeastOne = (inputs: Inputs, name: string): number => {
  const value = intInput(inputs, name);
  if (value >= 1) return value;
  throw new NodeFailure('ValueError', `${name} must be at least 1, not ${value}`);
};

/** All 64 bits of the seed; a number that left the range through a link wraps around. */
const seedInput = (inputs: Inputs): bigint => {
  const value = inputs['seed'];
  return typeof value === 'bigint' ? value : BigInt(intInput(inputs, 'seed'));
};

/** Everything that makes pictures of nothing but numbers. */
export const GENERATOR_NODES: readonly NodeDef[] = [
  createReactionDiffusion(() => performance.now()),
];
