import { SIDE } from './region.ts';
import { batchOf } from './batch.ts';
import type { NodeDef } from '../node.ts';
import { frameOf, levelOf, newPixels } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

const LEGACY = { pythonModule: 'nodes' } as const;
const EXTRAS = { pythonModule: 'comfy_extras.nodes_images', style: 'v3' } as const;

/** The nodes that make, measure and stack pictures. */
export const BASIC_NODES: readonly NodeDef[] = [
  typedNode({
    ...LEGACY,
    name: 'EmptyImage',
    displayName: 'Empty Image',
    category: 'image',
    required: {
      width: SIDE,
      height: SIDE,
      batch_size: ['INT', { default: 1, min: 1, max: 4096 }],
      color: ['INT', { default: 0, min: 0, max: 0xffffff, step: 1, display: 'color' }],
    },
    outputs: [{ type: 'IMAGE' }],
    run({ width, height, batch_size: batch, color: colour }, context) {
      const image = newPixels(context, { kind: 'image', batch, height, width, channels: 3 });
      const levels = [16, 8, 0].map((shift) => levelOf((colour >> shift) & 0xff));
      for (let i = 0; i < image.data.length; i++) image.data[i] = levels[i % 3] as number;
      return { outputs: [image] };
    },
  }),
  typedNode({
    ...EXTRAS,
    name: 'GetImageSize',
    displayName: 'Get Image Size',
    description: 'Tells how wide and how high a picture is, and how many pictures the batch holds.',
    category: 'image',
    required: { image: ['IMAGE', {}] },
    hidden: { unique_id: 'UNIQUE_ID' },
    outputs: [
      { type: 'INT', name: 'width' },
      { type: 'INT', name: 'height' },
      { type: 'INT', name: 'batch_size' },
    ],
    run({ image: { width, height, batch } }, context) {
      context.text(`width: ${width}, height: ${height}\n batch size: ${batch}`);
      return { outputs: [width, height, batch] };
    },
  }),
  typedNode({
    ...LEGACY,
    name: 'ImageBatch',
    displayName: 'Batch Images (DEPRECATED)',
    deprecated: true,
    category: 'image/batch',
    required: { image1: ['IMAGE'], image2: ['IMAGE'] },
    outputs: [{ type: 'IMAGE' }],
    run: ({ image1, image2 }, context) => ({ outputs: [batchOf(context, [image1, image2])] }),
  }),
  typedNode({
    ...EXTRAS,
    name: 'RepeatImageBatch',
    displayName: 'Repeat Image Batch',
    category: 'image/batch',
    required: { image: ['IMAGE', {}], amount: ['INT', { default: 1, min: 1, max: 4096 }] },
    outputs: [{ type: 'IMAGE' }],
    run({ image, amount }, context) {
      const repeated = newPixels(context, { ...image, batch: image.batch * amount });
      for (let i = 0; i < amount; i++) {
        context.check();
        repeated.data.set(image.data, i * image.data.length);
      }
      return { outputs: [repeated] };
    },
  }),
  typedNode({
    ...EXTRAS,
    name: 'ImageFromBatch',
    displayName: 'Get Image from Batch',
    category: 'image/batch',
    required: {
      image: ['IMAGE', {}],
      batch_index: ['INT', { default: 0, min: -16384, max: 16384 }],
      length: ['INT', { default: 1, min: 1, max: 4096 }],
    },
    outputs: [{ type: 'IMAGE' }],
    run({ image, batch_index: index, length }, context) {
      // Below 0 it counts from the end. Outside of the batch v1 takes the nearest picture, and never
      // more pictures than remain.
      const place = index < 0 ? Math.max(0, image.batch + index) : index;
      const first = Math.min(image.batch - 1, place);
      const batch = Math.min(image.batch - first, length);
      const taken = newPixels(context, { ...image, batch });
      for (let i = 0; i < batch; i++) frameOf(taken, i).set(frameOf(image, first + i));
      return { outputs: [taken] };
    },
  }),
];
