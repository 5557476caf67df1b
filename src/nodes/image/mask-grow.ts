import type { MaskValue, NodeContext } from '../node.ts';
import { frameOf, newMask } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

/** Grows or shrinks the area of a mask, pixel by pixel. */
export const growMask = typedNode({
  name: 'GrowMask',
  category: 'mask',
  pythonModule: 'comfy_extras.nodes_mask',
  required: {
    mask: ['MASK'],
    expand: ['INT', { default: 0, min: -16384, max: 16384, step: 1 }],
    tapered_corners: ['BOOLEAN', { default: true }],
  },
  outputs: [{ type: 'MASK' }],
  run({ mask, expand, tapered_corners: isTapered }, context) {
    const grown = newMask(context, mask);
    // To shrink is to grow the negative.
    const sign = expand < 0 ? -1 : 1;
    for (let i = 0; i < mask.data.length; i++) grown.data[i] = sign * (mask.data[i] as number);
    const across = newMask(context, { ...mask, batch: 1 }).data;
    const next = newMask(context, { ...mask, batch: 1 }).data;
    for (let i = 0; i < mask.batch; i++) {
      const levels = frameOf(grown, i);
      // In every step each pixel takes the highest level of its neighbours: four if tapered, else
      // eight.
      for (let step = 0; step < Math.abs(expand); step++) {
        spreadAcross(context, { ...mask, data: levels }, across);
        spreadDown(context, { ...mask, data: across }, isTapered ? levels : across, next);
        if (sameLevels(levels, next)) break;
        levels.set(next);
      }
    }
    for (let i = 0; i < grown.data.length; i++) grown.data[i] = sign * (grown.data[i] as number);
    return { outputs: [grown] };
  },
});

type Sheet = Pick<MaskValue, 'data' | 'width' | 'height'>;

const spreadAcross = (
  context: NodeContext,
  { data, width, height }: Sheet,
  target: Float32Array,
): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    const [first, last] = [y * width, (y + 1) * width - 1];
    let before = data[first] as number;
    for (let i = first; i <= last; i++) {
      const here = data[i] as number;
      const after = i < last ? (data[i + 1] as number) : here;
      const highest = before > here ? before : here;
      target[i] = after > highest ? after : highest;
      before = here;
    }
  }
};

const spreadDown = (
  context: NodeContext,
  { data: across, width, height }: Sheet,
  vertical: Float32Array,
  target: Float32Array,
): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    const up = y > 0 ? -width : 0;
    const down = y < height - 1 ? width : 0;
    for (let i = y * width; i < (y + 1) * width; i++) {
      const [above, below] = [vertical[i + up] as number, vertical[i + down] as number];
      const highest = above > below ? above : below;
      const here = across[i] as number;
      target[i] = here > highest ? here : highest;
    }
  }
};

const sameLevels = (one: Float32Array, other: Float32Array): boolean => {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
};
