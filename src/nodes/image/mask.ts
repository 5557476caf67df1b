import { type Pixels, type NodeContext, type NodeDef, fail } from '../node.ts';
import {
  MASK_EXTRAS,
  OFFSET,
  SIDE,
  channelOf,
  copyOf,
  cutOut,
  eachCoveredRow,
  greyPicture,
  inverted,
  refuseBeyond,
  regionWithin,
} from './region.ts';
import { eachRow, frameOf, maskOf, newMask, roundHalfEven } from '../tensor.ts';
import { combo, typedNode } from '../typed-node.ts';

const { fround } = Math;

const TO_MASK = { ...MASK_EXTRAS, outputs: [{ type: 'MASK' }] } as const;

const CHANNELS = ['red', 'green', 'blue', 'alpha'] as const;

type Operation = (destination: number, source: number) => number;

/** Rounds a level before the logical operations as v1 does: half to even. */
const isSet = (level: number): boolean => Math.abs(level) > 0.5;

const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ['multiply', (destination, source) => destination * source],
  ['add', (destination, source) => destination + source],
  ['subtract', (destination, source) => destination - source],
  ['and', (destination, source) => Number(isSet(destination) && isSet(source))],
  ['or', (destination, source) => Number(isSet(destination) || isSet(source))],
  ['xor', (destination, source) => Number(isSet(destination) !== isSet(source))],
]);

/** The nodes that make, change or convert masks. */
export const MASK_NODES: readonly NodeDef[] = [
  typedNode({
    ...TO_MASK,
    name: 'ImageToMask',
    displayName: 'Convert Image to Mask',
    required: { image: ['IMAGE', {}], channel: combo(CHANNELS) },
    run({ image, channel: word }, context) {
      const channel = CHANNELS.findIndex((name) => name === word);
      if (channel < 0) return fail('ValueError', `There is no channel ${word}`);
      if (channel >= image.channels) {
        const message = `The image has ${image.channels} channels, so there is no ${word} to take`;
        return fail('IndexError', message);
      }
      return { outputs: [channelOf(context, image, channel)] };
    },
  }),
  typedNode({
    ...MASK_EXTRAS,
    name: 'MaskToImage',
    displayName: 'Convert Mask to Image',
    required: { mask: ['MASK', {}] },
    outputs: [{ type: 'IMAGE' }],
    run: ({ mask }, context) => ({ outputs: [greyPicture(context, mask)] }),
  }),
  typedNode({
    ...TO_MASK,
    name: 'ImageColorToMask',
    displayName: 'Convert Image Color to Mask',
    required: {
      image: ['IMAGE', {}],
      color: ['INT', { default: 0, min: 0, max: 0xffffff, step: 1, display: 'number' }],
    },
    run({ image, color: colour }, context) {
      const level = (index: number): number => byteOf(image.data[index] as number);
      const mask = maskOf(context, image, (i) => {
        const from = i * image.channels;
        const found = level(from) * 0x10000 + level(from + 1) * 0x100 + level(from + 2);
        return found === colour ? 1 : 0;
      });
      return { outputs: [mask] };
    },
  }),
  typedNode({
    ...TO_MASK,
    name: 'SolidMask',
    displayName: 'Create Solid Mask',
    required: {
      value: ['FLOAT', { default: 1.0, min: 0.0, max: 1.0, step: 0.01 }],
      width: SIDE,
      height: SIDE,
    },
    run({ value, width, height }, context) {
      if (width < 1 || height < 1)
        return fail('RuntimeError', `There is no mask of ${width} × ${height} pixels`);
      const mask = newMask(context, { batch: 1, width, height });
      mask.data.fill(value);
      return { outputs: [mask] };
    },
  }),
  typedNode({
    ...TO_MASK,
    name: 'InvertMask',
    displayName: 'Invert Mask',
    required: { mask: ['MASK', {}] },
    run: ({ mask }, context) => ({ outputs: [inverted(context, mask)] }),
  }),
  typedNode({
    ...TO_MASK,
    name: 'CropMask',
    displayName: 'Crop Mask',
    required: { mask: ['MASK', {}], x: OFFSET, y: OFFSET, width: SIDE, height: SIDE },
    run({ mask, ...region }, context) {
      // Unlike in ImageCrop, a corner outside the mask is not moved back onto it.
      return { outputs: [cutOut(context, mask, regionWithin(mask, region))] };
    },
  }),
  /** Combines a mask with another one that is laid over a part of it. */
  typedNode({
    ...TO_MASK,
    name: 'MaskComposite',
    displayName: 'Combine Masks',
    required: {
      destination: ['MASK', {}],
      source: ['MASK', {}],
      x: OFFSET,
      y: OFFSET,
      operation: combo([...OPERATIONS.keys()]),
    },
    run({ source, x, y, ...inputs }, context) {
      const destination = copyOf(context, inputs.destination);
      // Other words can come through a link only. They change nothing, as in v1.
      const operation = OPERATIONS.get(inputs.operation) ?? ((level: number) => level);
      fittingBatches(destination, source);
      refuseBeyond({ x, y }, destination, source);
      const { data } = destination;
      const covered = { target: destination, source, at: { x, y } };
      eachCoveredRow(context, covered, ({ width, to, from: fromIn }) => {
        const from = fromIn(source);
        for (let i = 0; i < width; i++) {
          data[to + i] = operation(data[to + i] as number, source.data[from + i] as number);
        }
      });
      // The range is also enforced outside of the laid part.
      for (let i = 0; i < data.length; i++) data[i] = Math.min(1, Math.max(0, data[i] as number));
      return { outputs: [destination] };
    },
  }),
  /** Fades a mask out towards its edges. */
  typedNode({
    ...TO_MASK,
    name: 'FeatherMask',
    displayName: 'Feather Mask',
    required: { mask: ['MASK', {}], left: OFFSET, top: OFFSET, right: OFFSET, bottom: OFFSET },
    run({ mask, ...feathers }, context) {
      const { width, height } = mask;
      const [left, right] = [ramp(width, feathers.left), ramp(width, feathers.right).toReversed()];
      const [top, bottom] = [
        ramp(height, feathers.top),
        ramp(height, feathers.bottom).toReversed(),
      ];
      const feathered = newMask(context, mask);
      eachRow(context, mask, (row) => {
        const y = row % height;
        for (let x = 0, i = row * width; x < width; x++, i++) {
          const across = (left[x] as number) * (right[x] as number);
          const level = (mask.data[i] as number) * across;
          feathered.data[i] = level * (top[y] as number) * (bottom[y] as number);
        }
      });
      return { outputs: [feathered] };
    },
  }),
  /** Grows or shrinks the area of a mask, pixel by pixel. */
  typedNode({
    ...TO_MASK,
    name: 'GrowMask',
    displayName: 'Grow Mask',
    required: {
      mask: ['MASK', {}],
      expand: ['INT', { default: 0, min: -16384, max: 16384, step: 1 }],
      tapered_corners: ['BOOLEAN', { advanced: true, default: true }],
    },
    run({ mask, expand, tapered_corners: isTapered }, context) {
      const grown = newMask(context, mask);
      // To shrink is to grow the negative.
      const sign = expand < 0 ? -1 : 1;
      for (let i = 0; i < mask.data.length; i++) grown.data[i] = sign * (mask.data[i] as number);
      const next = newMask(context, { ...mask, batch: 1 }).data;
      const shape = isTapered ? 'cross' : 'square';
      for (let i = 0; i < mask.batch; i++) {
        const levels = frameOf(grown, i);
        for (let step = 0; step < Math.abs(expand); step++) {
          if (!spread(context, { ...mask, data: levels }, shape, next)) break;
          levels.set(next);
        }
      }
      for (let i = 0; i < grown.data.length; i++) grown.data[i] = sign * (grown.data[i] as number);
      return { outputs: [grown] };
    },
  }),
  typedNode({
    ...TO_MASK,
    name: 'ThresholdMask',
    displayName: 'Threshold Mask',
    required: {
      mask: ['MASK', {}],
      value: ['FLOAT', { default: 0.5, min: 0.0, max: 1.0, step: 0.01 }],
    },
    run({ mask, value }, context) {
      // Compared in single precision: a level of 51/255 is not above 0.2.
      const least = fround(value);
      return { outputs: [maskOf(context, mask, (i) => Number((mask.data[i] as number) > least))] };
    },
  }),
];

/**
 * Returns factors that grow from the first position on. A feather longer than the mask is cut to
 * its length.
 */
const ramp = (length: number, feather: number): Float32Array => {
  const size = Math.min(length, feather);
  return Float32Array.from({ length }, (_, i) => (i < size ? (i + 1) / size : 1));
};

/** Returns a byte. v1 rounds here, while saving cuts off. */
const byteOf = (level: number): number =>
  roundHalfEven(fround(Math.min(1, Math.max(0, level)) * 255));

const fittingBatches = (destination: Pixels, source: Pixels): void => {
  if (source.batch === 1 || source.batch === destination.batch) return;
  const counts = `${source.batch} masks over ${destination.batch}`;
  return fail('RuntimeError', `Cannot lay ${counts}: there must be one, or as many`);
};

type Sheet = Pick<Pixels, 'data' | 'width' | 'height'>;

/**
 * Gives each pixel the highest level of itself and its neighbours: four in a cross, eight in a
 * square. Returns true when a level has changed.
 */
const spread = (
  context: NodeContext,
  { data, width, height }: Sheet,
  shape: 'cross' | 'square',
  target: Float32Array,
): boolean => {
  let isChanged = false;
  for (let i = 0; i < target.length; i++) {
    const [x, y] = [i % width, Math.floor(i / width)];
    if (x === 0) context.check();
    let highest = data[i] as number;
    for (let near = 0; near < 9; near++) {
      const [across, down] = [(near % 3) - 1, Math.floor(near / 3) - 1];
      const [column, row] = [x + across, y + down];
      if (shape === 'cross' && across !== 0 && down !== 0) continue;
      if (column < 0 || column >= width || row < 0 || row >= height) continue;
      highest = Math.max(highest, data[row * width + column] as number);
    }
    target[i] = highest;
    isChanged ||= highest !== data[i];
  }
  return isChanged;
};
