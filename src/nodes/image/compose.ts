import type { Pixels, NodeContext, NodeDef } from '../node.ts';
import { OFFSET, type Point, copyOf, eachCoveredRow, requireChannels } from './region.ts';
import { fitted } from '../resample/resample.ts';
import { newMask, newPixels } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

const COMPOSITING = {
  category: 'image/compositing',
  pythonModule: 'comfy_extras.nodes_compositing',
  style: 'v3',
} as const;

/** The nodes that lay pictures over one another, or handle their transparency. */
export const COMPOSE_NODES: readonly NodeDef[] = [
  typedNode({
    ...COMPOSITING,
    name: 'ImageCompositeMasked',
    displayName: 'Image Composite Masked',
    pythonModule: 'comfy_extras.nodes_mask',
    required: {
      destination: ['IMAGE', {}],
      source: ['IMAGE', {}],
      x: OFFSET,
      y: OFFSET,
      resize_source: ['BOOLEAN', { default: false }],
    },
    optional: { mask: ['MASK', {}] },
    outputs: [{ type: 'IMAGE' }],
    run({ destination, source: given, x, y, resize_source: isResized, mask }, context) {
      requireChannels(['destination', destination], ['source', given]);
      const source = isResized ? fitted(context, given, destination, STRETCHED) : given;
      const result = copyOf(context, destination);
      const fittingMask = mask && fitted(context, mask, source, STRETCHED);
      composite(context, result, { source, at: { x, y }, mask: fittingMask });
      return { outputs: [result] };
    },
  }),
  typedNode({
    ...COMPOSITING,
    name: 'JoinImageWithAlpha',
    displayName: 'Join Image with Alpha',
    required: { image: ['IMAGE', {}], alpha: ['MASK', {}] },
    outputs: [{ type: 'IMAGE' }],
    run({ image, alpha }, context) {
      const mask = fitted(context, alpha, image, STRETCHED);
      const colours = Math.min(3, image.channels);
      const batch = Math.min(image.batch, mask.batch);
      const joined = newPixels(context, { ...image, batch, channels: colours + 1 });
      for (let i = 0, to = 0; to < joined.data.length; i++) {
        if (i % image.width === 0) context.check();
        const from = i * image.channels;
        for (let c = 0; c < colours; c++) joined.data[to++] = image.data[from + c] as number;
        joined.data[to++] = 1 - (mask.data[i] as number);
      }
      return { outputs: [joined] };
    },
  }),
  typedNode({
    ...COMPOSITING,
    name: 'SplitImageWithAlpha',
    displayName: 'Split Image with Alpha',
    required: { image: ['IMAGE', {}] },
    outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
    run({ image }, context) {
      const { channels, data } = image;
      const colours = Math.min(3, channels);
      const opaque = newPixels(context, { ...image, channels: colours });
      const mask = newMask(context, image);
      for (let i = 0, to = 0; i < mask.data.length; i++) {
        if (i % image.width === 0) context.check();
        for (let c = 0; c < colours; c++) opaque.data[to++] = data[i * channels + c] as number;
        if (channels > 3) mask.data[i] = 1 - (data[i * channels + 3] as number);
      }
      return { outputs: [opaque, mask] };
    },
  }),
];

/** Pictures and masks are stretched to the sides of the other one. */
const STRETCHED = { method: 'bilinear' } as const;

/**
 * Composes batches. A source or mask batch that is shorter than the target repeats; surplus
 * pictures are ignored.
 */
const composite = (
  context: NodeContext,
  target: Pixels,
  { source, at, mask }: { source: Pixels; at: Point; mask: Pixels | undefined },
): void => {
  eachCoveredRow(context, { target, source, at }, (row) => {
    let to = row.to * target.channels;
    let from = row.from(source) * source.channels;
    const maskFrom = mask ? row.from(mask) : 0;
    for (let x = 0; x < row.width; x++, to += target.channels, from += source.channels) {
      const share = mask ? (mask.data[maskFrom + x] as number) : 1;
      for (let c = 0; c < target.channels; c++) {
        const below = (1 - share) * (target.data[to + c] as number);
        target.data[to + c] = share * (source.data[from + c] as number) + below;
      }
    }
  });
};
