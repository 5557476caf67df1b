import { type MaskValue, type NodeContext, type NodeDef, NodeFailure } from '../node.ts';
import { combo } from '../combo.ts';
import { maskComposite } from './mask-composite.ts';
import { growMask } from './mask-grow.ts';
import {
  MASK_EXTRAS,
  OFFSET,
  SIDE,
  asMask,
  asPicture,
  channelOf,
  cutOut,
  greyPicture,
  spanWithin,
} from './region.ts';
import { newMask, roundHalfEven } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

const { fround } = Math;

const TO_MASK = { ...MASK_EXTRAS, outputs: [{ type: 'MASK' }] } as const;

/** Fades a mask out towards its edges. */
const featherMask = typedNode({
  ...TO_MASK,
  name: 'FeatherMask',
  displayName: 'Feather Mask',
  required: { mask: ['MASK', {}], left: OFFSET, top: OFFSET, right: OFFSET, bottom: OFFSET },
  run({ mask, ...feathers }, context) {
    const { width, height } = mask;
    const [left, right] = [ramp(width, feathers.left), ramp(width, feathers.right).toReversed()];
    const [top, bottom] = [ramp(height, feathers.top), ramp(height, feathers.bottom).toReversed()];
    const feathered = newMask(context, mask);
    for (let row = 0; row < mask.batch * height; row++) {
      context.check();
      const [down, up] = [top[row % height] as number, bottom[row % height] as number];
      for (let x = 0, i = row * width; x < width; x++, i++) {
        const across = (left[x] as number) * (right[x] as number);
        feathered.data[i] = (mask.data[i] as number) * across * down * up;
      }
    }
    return { outputs: [feathered] };
  },
});

/**
 * Returns factors that grow from the first position on. A feather longer than the mask is cut to
 * its length.
 */
const ramp = (length: number, feather: number): Float32Array => {
  const size = Math.min(length, feather);
  return Float32Array.from({ length }, (_, i) => (i < size ? (i + 1) / size : 1));
};

const CHANNELS = ['red', 'green', 'blue', 'alpha'] as const;

const imageToMask = typedNode({
  ...TO_MASK,
  name: 'ImageToMask',
  displayName: 'Convert Image to Mask',
  required: { image: ['IMAGE', {}], channel: combo(CHANNELS) },
  run({ image, channel: word }, context) {
    const channel = CHANNELS.findIndex((name) => name === word);
    if (channel < 0) throw new NodeFailure('ValueError', `There is no channel ${word}`);
    if (channel >= image.channels) {
      const message = `The image has ${image.channels} channels, so there is no ${word} to take`;
      throw new NodeFailure('IndexError', message);
    }
    return { outputs: [channelOf(context, image, channel)] };
  },
});

const maskToImage = typedNode({
  ...MASK_EXTRAS,
  name: 'MaskToImage',
  displayName: 'Convert Mask to Image',
  required: { mask: ['MASK', {}] },
  outputs: [{ type: 'IMAGE' }],
  run: ({ mask }, context) => ({ outputs: [greyPicture(context, mask)] }),
});

const imageColorToMask = typedNode({
  ...TO_MASK,
  name: 'ImageColorToMask',
  displayName: 'Convert Image Color to Mask',
  required: {
    image: ['IMAGE', {}],
    color: ['INT', { default: 0, min: 0, max: 0xffffff, step: 1, display: 'number' }],
  },
  run({ image: { data, channels, ...shape }, color: colour }, context) {
    const mask = newMask(context, shape);
    const level = (index: number): number => byteOf(data[index] as number);
    for (let i = 0, from = 0; i < mask.data.length; i++, from += channels) {
      if (i % mask.width === 0) context.check();
      const found = level(from) * 0x10000 + level(from + 1) * 0x100 + level(from + 2);
      mask.data[i] = found === colour ? 1 : 0;
    }
    return { outputs: [mask] };
  },
});

/** Returns a byte. v1 rounds here, while saving cuts off. */
const byteOf = (level: number): number =>
  roundHalfEven(fround(Math.min(1, Math.max(0, level)) * 255));

const solidMask = typedNode({
  ...TO_MASK,
  name: 'SolidMask',
  displayName: 'Create Solid Mask',
  required: {
    value: ['FLOAT', { default: 1.0, min: 0.0, max: 1.0, step: 0.01 }],
    width: SIDE,
    height: SIDE,
  },
  run({ value, width, height }, context) {
    if (width < 1 || height < 1) {
      throw new NodeFailure('RuntimeError', `There is no mask of ${width} × ${height} pixels`);
    }
    const mask = newMask(context, { batch: 1, width, height });
    mask.data.fill(value);
    return { outputs: [mask] };
  },
});

const eachLevel = (
  context: NodeContext,
  mask: MaskValue,
  change: (level: number) => number,
): MaskValue => {
  const changed = newMask(context, mask);
  for (let i = 0; i < mask.data.length; i++) {
    if (i % mask.width === 0) context.check();
    changed.data[i] = change(mask.data[i] as number);
  }
  return changed;
};

const invertMask = typedNode({
  ...TO_MASK,
  name: 'InvertMask',
  displayName: 'Invert Mask',
  required: { mask: ['MASK', {}] },
  run: ({ mask }, context) => ({ outputs: [eachLevel(context, mask, (level) => 1 - level)] }),
});

const thresholdMask = typedNode({
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
    return { outputs: [eachLevel(context, mask, (level) => (level > least ? 1 : 0))] };
  },
});

const cropMask = typedNode({
  ...TO_MASK,
  name: 'CropMask',
  displayName: 'Crop Mask',
  required: { mask: ['MASK', {}], x: OFFSET, y: OFFSET, width: SIDE, height: SIDE },
  run({ mask, x, y, width, height }, context) {
    // Unlike in ImageCrop, a corner outside the mask is not moved back onto it.
    const columns = spanWithin(mask.width, { start: x, end: x + width });
    const rows = spanWithin(mask.height, { start: y, end: y + height });
    return { outputs: [asMask(cutOut(context, asPicture(mask), { columns, rows }))] };
  },
});

/** The nodes that make, change or convert masks. */
export const MASK_NODES: readonly NodeDef[] = [
  imageToMask,
  maskToImage,
  imageColorToMask,
  solidMask,
  invertMask,
  cropMask,
  maskComposite,
  featherMask,
  growMask,
  thresholdMask,
];
