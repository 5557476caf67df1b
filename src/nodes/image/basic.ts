import { fitted } from '../resample/resample.ts';
import type { ImageValue, NodeContext, NodeDef } from '../node.ts';
import { fillAlpha, frameOf, imageInput, intInput, levelOf, newImage } from '../tensor.ts';

const LEGACY = { pythonModule: 'nodes' } as const;
const EXTRAS = { ...LEGACY, pythonModule: 'comfy_extras.nodes_images' } as const;

const emptyImage: NodeDef = {
  ...LEGACY,
  name: 'EmptyImage',
  isBriefWhenSmall: true,
  category: 'image',
  required: {
    width: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    height: ['INT', { default: 512, min: 1, max: 16384, step: 1 }],
    batch_size: ['INT', { default: 1, min: 1, max: 4096 }],
    color: ['INT', { default: 0, min: 0, max: 0xffffff, step: 1, display: 'color' }],
  },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const [width, height] = [intInput(inputs, 'width'), intInput(inputs, 'height')];
    const batch = intInput(inputs, 'batch_size');
    const colour = intInput(inputs, 'color');
    const image = newImage(context, { batch, height, width, channels: 3 });
    const levels = [16, 8, 0].map((shift) => levelOf((colour >> shift) & 0xff));
    for (let i = 0; i < image.data.length; i++) image.data[i] = levels[i % 3] as number;
    return { outputs: [image] };
  },
};

const getImageSize: NodeDef = {
  ...EXTRAS,
  name: 'GetImageSize',
  displayName: 'Get Image Size',
  description: 'Tells how wide and how high a picture is, and how many pictures the batch holds.',
  category: 'image',
  required: { image: ['IMAGE'] },
  hidden: { unique_id: 'UNIQUE_ID' },
  outputs: [
    { type: 'INT', name: 'width' },
    { type: 'INT', name: 'height' },
    { type: 'INT', name: 'batch_size' },
  ],
  run: (inputs, context) => {
    const { width, height, batch } = imageInput(inputs, 'image');
    context.text(`width: ${width}, height: ${height}\n batch size: ${batch}`);
    return { outputs: [width, height, batch] };
  },
};

const imageBatch: NodeDef = {
  ...LEGACY,
  name: 'ImageBatch',
  displayName: 'Batch Images',
  category: 'image',
  required: { image1: ['IMAGE'], image2: ['IMAGE'] },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const given = [imageInput(inputs, 'image1'), imageInput(inputs, 'image2')] as const;
    const channels = Math.max(given[0].channels, given[1].channels);
    const first = fillAlpha(context, given[0], channels);
    const second = fillAlpha(context, given[1], channels);
    // v1 fits the second picture to the first: bilinear, the middle kept.
    const level = fitted(context, second, first, { method: 'bilinear', crop: 'center' });
    return { outputs: [concatenate(context, first, level)] };
  },
};

const concatenate = (context: NodeContext, first: ImageValue, second: ImageValue): ImageValue => {
  const joined = newImage(context, { ...first, batch: first.batch + second.batch });
  joined.data.set(first.data, 0);
  joined.data.set(second.data, first.data.length);
  return joined;
};

const repeatImageBatch: NodeDef = {
  ...EXTRAS,
  name: 'RepeatImageBatch',
  category: 'image/batch',
  required: { image: ['IMAGE'], amount: ['INT', { default: 1, min: 1, max: 4096 }] },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    const amount = intInput(inputs, 'amount');
    const repeated = newImage(context, { ...image, batch: image.batch * amount });
    for (let i = 0; i < amount; i++) repeated.data.set(image.data, i * image.data.length);
    return { outputs: [repeated] };
  },
};

const imageFromBatch: NodeDef = {
  ...EXTRAS,
  name: 'ImageFromBatch',
  category: 'image/batch',
  required: {
    image: ['IMAGE'],
    batch_index: ['INT', { default: 0, min: 0, max: 4095 }],
    length: ['INT', { default: 1, min: 1, max: 4096 }],
  },
  outputs: [{ type: 'IMAGE' }],
  run: (inputs, context) => {
    const image = imageInput(inputs, 'image');
    // Beyond the end v1 takes the last picture, and no more pictures than remain.
    const first = Math.min(image.batch - 1, intInput(inputs, 'batch_index'));
    const batch = Math.min(image.batch - first, intInput(inputs, 'length'));
    const taken = newImage(context, { ...image, batch });
    for (let i = 0; i < batch; i++) frameOf(taken, i).set(frameOf(image, first + i));
    return { outputs: [taken] };
  },
};

/** Making, measuring and stacking pictures. */
export const BASIC_NODES: readonly NodeDef[] = [
  emptyImage,
  getImageSize,
  imageBatch,
  repeatImageBatch,
  imageFromBatch,
];
