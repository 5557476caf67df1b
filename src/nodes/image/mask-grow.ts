import type { MaskValue, NodeContext, NodeDef } from '../node.ts';
import { boolInput, frameOf, intInput, maskInput, newMask } from '../tensor.ts';

/** Grows or shrinks the area of a mask, pixel by pixel. */
export const growMask: NodeDef = {
  name: 'GrowMask',
  category: 'mask',
  pythonModule: 'comfy_extras.nodes_mask',
  required: {
    mask: ['MASK'],
    expand: ['INT', { default: 0, min: -16384, max: 16384, step: 1 }],
    tapered_corners: ['BOOLEAN', { default: true }],
  },
  outputs: [{ type: 'MASK' }],
  run: (inputs, context) => {
    const mask = maskInput(inputs, 'mask');
    const expand = intInput(inputs, 'expand');
    const corners = boolInput(inputs, 'tapered_corners') ? 'tapered' : 'square';
    const grown = newMask(context, mask);
    // Narrowing is widening of the negative.
    const sign = expand < 0 ? -1 : 1;
    for (let i = 0; i < mask.data.length; i++) grown.data[i] = sign * (mask.data[i] as number);
    const growth = { steps: Math.abs(expand), corners, ...scratch(context, mask) } as const;
    for (let i = 0; i < mask.batch; i++) {
      const sheet = { levels: frameOf(grown, i), width: mask.width, height: mask.height };
      widen(context, sheet, growth);
    }
    for (let i = 0; i < grown.data.length; i++) grown.data[i] = sign * (grown.data[i] as number);
    return { outputs: [grown] };
  },
};

type Sheet = { readonly levels: Float32Array; readonly width: number; readonly height: number };

type Scratch = { readonly next: Float32Array; readonly across: Float32Array };

const scratch = (context: NodeContext, mask: MaskValue): Scratch => ({
  next: newMask(context, { ...mask, batch: 1 }).data,
  across: newMask(context, { ...mask, batch: 1 }).data,
});

type Growth = Scratch & { readonly steps: number; readonly corners: 'tapered' | 'square' };

/** Every step each pixel takes the highest level among its neighbours: four if tapered, else eight. */
const widen = (
  context: NodeContext,
  sheet: Sheet,
  { steps, corners, next, across }: Growth,
): void => {
  const { width, height, levels } = sheet;
  for (let step = 0; step < steps; step++) {
    const beside = { levels: across, width, height };
    spreadAcross(context, sheet, beside);
    spreadDown(context, beside, { vertical: corners === 'tapered' ? levels : across, next });
    if (sameLevels(levels, next)) return;
    levels.set(next);
  }
};

const spreadAcross = (context: NodeContext, { levels, width, height }: Sheet, to: Sheet): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    const [first, last] = [y * width, (y + 1) * width - 1];
    let before = levels[first] as number;
    for (let i = first; i <= last; i++) {
      const here = levels[i] as number;
      const after = i < last ? (levels[i + 1] as number) : here;
      const highest = before > here ? before : here;
      to.levels[i] = after > highest ? after : highest;
      before = here;
    }
  }
};

type Down = { readonly vertical: Float32Array; readonly next: Float32Array };

const spreadDown = (
  context: NodeContext,
  { levels: across, width, height }: Sheet,
  { vertical, next }: Down,
): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    const up = y > 0 ? -width : 0;
    const down = y < height - 1 ? width : 0;
    for (let i = y * width; i < (y + 1) * width; i++) {
      const [above, below] = [vertical[i + up] as number, vertical[i + down] as number];
      const highest = above > below ? above : below;
      const here = across[i] as number;
      next[i] = here > highest ? here : highest;
    }
  }
};

const sameLevels = (one: Float32Array, other: Float32Array): boolean => {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
};
