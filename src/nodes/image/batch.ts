import { fitted } from '../resample/resample.ts';
import type { NodeContext, NodeDef, Pixels } from '../node.ts';
import { fillAlpha, newPixels } from '../tensor.ts';
import { autogrow, typedNode } from '../typed-node.ts';

const BATCH = { pythonModule: 'comfy_extras.nodes_post_processing', style: 'v3' } as const;

/** How v1 brings the later ones to the size of the first. */
const TO_FIRST = { method: 'bilinear', crop: 'center' } as const;

const COUNTS = { min: 1, max: 50 } as const;

/** The nodes that put several pictures or masks into one batch. */
export const BATCH_NODES: readonly NodeDef[] = [
  typedNode({
    ...BATCH,
    name: 'BatchImagesNode',
    displayName: 'Batch Images',
    category: 'image/batch',
    required: { images: autogrow({ image: ['IMAGE', {}] }, { prefix: 'image', ...COUNTS }) },
    outputs: [{ type: 'IMAGE' }],
    run: ({ images }, context) => ({ outputs: [batchOf(context, Object.values(images))] }),
  }),
  typedNode({
    ...BATCH,
    name: 'BatchMasksNode',
    displayName: 'Batch Masks',
    category: 'image/mask',
    required: { masks: autogrow({ mask: ['MASK', {}] }, { prefix: 'mask', ...COUNTS }) },
    outputs: [{ type: 'MASK' }],
    run: ({ masks }, context) => ({
      outputs: [batchOf(context, Object.values(masks))],
    }),
  }),
];

/** Puts pictures or masks into one batch, with the channels of all and the size of the first. */
export function batchOf(context: NodeContext, images: readonly Pixels[]): Pixels {
  const channels = Math.max(...images.map((image) => image.channels));
  const filled = images.map((image) => fillAlpha(context, image, channels));
  const [first, ...others] = filled as [Pixels, ...Pixels[]];
  const all = [first, ...others.map((image) => fitted(context, image, first, TO_FIRST))];
  const batch = all.reduce((sum, image) => sum + image.batch, 0);
  const joined = newPixels(context, { ...first, batch });
  let offset = 0;
  for (const { data } of all) {
    joined.data.set(data, offset);
    offset += data.length;
  }
  return joined;
}
