import type { NodeDef } from '../node.ts';
import { intInput, maskInput, newMask } from '../tensor.ts';

const { fround } = Math;

const WIDTH = ['INT', { default: 0, min: 0, max: 16384, step: 1 }] as const;

/** Fading a mask out towards its edges. */
export const featherMask: NodeDef = {
  name: 'FeatherMask',
  category: 'mask',
  pythonModule: 'comfy_extras.nodes_mask',
  required: { mask: ['MASK'], left: WIDTH, top: WIDTH, right: WIDTH, bottom: WIDTH },
  outputs: [{ type: 'MASK' }],
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
