import type { MaskValue, NodeContext } from '../node.ts';
import { MASK_EXTRAS } from './region.ts';
import { frameOf, newMask } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

/** Grows or shrinks the area of a mask, pixel by pixel. */
export const growMask = typedNode({
  name: 'GrowMask',
  ...MASK_EXTRAS,
  displayName: 'Grow Mask',
  required: {
    mask: ['MASK', {}],
    expand: ['INT', { default: 0, min: -16384, max: 16384, step: 1 }],
    tapered_corners: ['BOOLEAN', { advanced: true, default: true }],
  },
  outputs: [{ type: 'MASK' }],
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
});

type Sheet = Pick<MaskValue, 'data' | 'width' | 'height'>;

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
