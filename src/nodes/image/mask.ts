import { type MaskValue, type NodeContext, type NodeDef, NodeFailure } from '../node.ts';
import { maskComposite } from './mask-composite.ts';
import { growMask } from './mask-grow.ts';
import { asMask, asPicture, cutOut, spanWithin } from './region.ts';
import {
  floatInput,
  imageInput,
  intInput,
  maskInput,
  newImage,
  newMask,
  roundHalfEven,
  stringInput,
} from '../tensor.ts';

const { fround } = Math;

const SIDE = ['INT', { default: 512, min: 1, max: 16384, step: 1 }] as const;
const OFFSET = ['INT', { default: 0, min: 0, max: 16384, step: 1 }] as const;

const COMMON = {
  category: 'mask',
  pythonModule: 'comfy_extras.nodes_mask',
} as const;

const TO_MASK = { ...COMMON, outputs: [{ type: 'MASK' }] } as const;

/** Fading a mask out towards its edges. */
const featherMask: NodeDef = {
  ...TO_MASK,
  name: 'FeatherMask',
  required: { mask: ['MASK'], left: OFFSET, top: OFFSET, right: OFFSET, bottom: OFFSET },
  run: (inputs, context) => {
    const mask = maskInput(inputs, 'mask');
    const { width, height } = mask;
    const left = rampUp(width, intInput(inputs, 'left'));
    const right = rampDown(width, intInput(inputs, 'right'));
    const top = rampUp(height, intInput(inputs, 'top'));
    const bottom = rampDown(height, intInput(inputs, 'bottom'));
    const feathered = newMask(context, mask);
    for (let row = 0; row < mask.batch * height; row++) {
      context.check();
      const [down, up] = [top[row % height] as number, bottom[row % height] as number];
      for (let x = 0, i = row * width; x < width; x++, i++) {
        const once = fround((mask.data[i] as number) * (left[x] as number));
        const twice = fround(once * (right[x] as number));
        feathered.data[i] = fround(twice * down) * up;
      }
    }
    return { outputs: [feathered] };
  },
};

/** Factors growing from the first position on; a feather longer than the mask is cut to its length. */
const rampUp = (length: number, feather: number): Float32Array => {
  const size = Math.min(length, feather);
  return Float32Array.from({ length }, (_, i) => (i < size ? (i + 1) / size : 1));
};

/**
 * The same from the far end, as v1 counts there: its smallest factor falls on position 0 (which is
 * as far from the end as 0 is from 0), the next one on the last position.
 */
const rampDown = (length: number, feather: number): Float32Array => {
  const size = Math.min(length, feather);
  const factors = new Float32Array(length).fill(1);
  for (let i = 0; i < size; i++) factors[i === 0 ? 0 : length - i] = (i + 1) / size;
  return factors;
};

const CHANNELS = ['red', 'green', 'blue', 'alpha'] as const;

const imageToMask: NodeDef = {
  ...TO_MASK,
  name: 'ImageToMask',
  displayName: 'Convert Image to Mask',
  required: { image: ['IMAGE'], channel: [CHANNELS] },
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const word = stringInput(inputs, 'channel');
    const channel = CHANNELS.findIndex((name) => name === word);
    if (channel < 0) throw new NodeFailure('ValueError', `There is no channel ${word}`);
    if (channel >= image.channels) {
      const message = `The image has ${image.channels} channels, so there is no ${word} to take`;
      throw new NodeFailure('IndexError', message);
    }
    const mask = newMask(context, image);
    for (let i = 0, from = channel; i < mask.data.length; i++, from += image.channels) {
      if (i % mask.width === 0) context.check();
      mask.data[i] = image.data[from] as number;
    }
    return { outputs: [mask] };
  },
};

const maskToImage: NodeDef = {
  ...COMMON,
  name: 'MaskToImage',
  displayName: 'Convert Mask to Image',
  required: { mask: ['MASK'] },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const mask = maskInput(inputs, 'mask');
    const image = newImage(context, { ...mask, channels: 3 });
    for (let i = 0, to = 0; i < mask.data.length; i++) {
      if (i % mask.width === 0) context.check();
      const level = mask.data[i] as number;
      for (let c = 0; c < 3; c++) image.data[to++] = level;
    }
    return { outputs: [image] };
  },
};

const imageColorToMask: NodeDef = {
  ...TO_MASK,
  name: 'ImageColorToMask',
  required: {
    image: ['IMAGE'],
    color: ['INT', { default: 0, min: 0, max: 0xffffff, step: 1, display: 'color' }],
  },
  run: (inputs, context) => {
    const { data, channels, ...shape } = imageInput(inputs, 'image');
    const colour = intInput(inputs, 'color');
    const mask = newMask(context, shape);
    const level = (index: number): number => byteOf(data[index] as number);
    for (let i = 0, from = 0; i < mask.data.length; i++, from += channels) {
      if (i % mask.width === 0) context.check();
      const found = level(from) * 0x10000 + level(from + 1) * 0x100 + level(from + 2);
      mask.data[i] = found === colour ? 1 : 0;
    }
    return { outputs: [mask] };
  },
};

/** Here v1 rounds, where saving cuts off. */
const byteOf = (level: number): number =>
  roundHalfEven(fround(Math.min(1, Math.max(0, level)) * 255));

const solidMask: NodeDef = {
  ...TO_MASK,
  name: 'SolidMask',
  required: {
    value: ['FLOAT', { default: 1.0, min: 0.0, max: 1.0, step: 0.01 }],
    width: SIDE,
    height: SIDE,
  },
  run: (inputs, context) => {
    const [width, height] = [intInput(inputs, 'width'), intInput(inputs, 'height')];
    if (width < 1 || height < 1) {
      throw new NodeFailure('RuntimeError', `There is no mask of ${width} × ${height} pixels`);
    }
    const mask = newMask(context, { batch: 1, width, height });
    mask.data.fill(floatInput(inputs, 'value'));
    return { outputs: [mask] };
  },
};

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

const invertMask: NodeDef = {
  ...TO_MASK,
  name: 'InvertMask',
  required: { mask: ['MASK'] },
  run: (inputs, context) => ({
    outputs: [eachLevel(context, maskInput(inputs, 'mask'), (level) => 1 - level)],
  }),
};

const thresholdMask: NodeDef = {
  ...TO_MASK,
  name: 'ThresholdMask',
  required: {
    mask: ['MASK'],
    value: ['FLOAT', { default: 0.5, min: 0.0, max: 1.0, step: 0.01 }],
  },
  run: (inputs, context) => {
    // Compared in single precision: a level of 51/255 is not above 0.2.
    const value = fround(floatInput(inputs, 'value'));
    const mask = maskInput(inputs, 'mask');
    return { outputs: [eachLevel(context, mask, (level) => (level > value ? 1 : 0))] };
  },
};

const cropMask: NodeDef = {
  ...TO_MASK,
  name: 'CropMask',
  required: { mask: ['MASK'], x: OFFSET, y: OFFSET, width: SIDE, height: SIDE },
  run: (inputs, context) => {
    const mask = asPicture(maskInput(inputs, 'mask'));
    // Unlike ImageCrop's, a corner outside the mask is not moved back onto it.
    const [x, y] = [intInput(inputs, 'x'), intInput(inputs, 'y')];
    const [width, height] = [intInput(inputs, 'width'), intInput(inputs, 'height')];
    const columns = spanWithin(mask.width, { start: x, end: x + width });
    const rows = spanWithin(mask.height, { start: y, end: y + height });
    return { outputs: [asMask(cutOut(context, mask, { columns, rows }))] };
  },
};

/** Everything that makes, changes or converts masks. */
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
