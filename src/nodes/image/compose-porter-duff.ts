import { type Coverage, MODE_NAMES, modeOf } from './compose-modes.ts';
import { NodeFailure } from '../node.ts';
import type { ImageValue, NodeDef } from '../node.ts';
import { fitted, fittedMask } from '../resample/resample.ts';
import { imageInput, maskInput, newImage, newMask, stringInput } from '../tensor.ts';

const { fround } = Math;

/** Below this coverage a pixel has no colour any more. */
const LEAST_ALPHA = fround(1e-5);

/** Compositing two pictures whose masks say where they are transparent. */
export const porterDuffImageComposite: NodeDef = {
  name: 'PorterDuffImageComposite',
  displayName: 'Porter-Duff Image Composite',
  category: 'mask/compositing',
  pythonModule: 'comfy_extras.nodes_compositing',
  style: 'v3',
  required: {
    source: ['IMAGE', {}],
    source_alpha: ['MASK', {}],
    destination: ['IMAGE', {}],
    destination_alpha: ['MASK', {}],
    mode: ['COMBO', { default: 'DST', multiselect: false, options: MODE_NAMES }],
  },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  run: (inputs, context) => {
    const mode = modeOf(stringInput(inputs, 'mode'));
    const destination = imageInput(inputs, 'destination');
    const given = imageInput(inputs, 'source');
    requireSameChannels(given, destination);
    const source = fitted(context, given, destination, FIT);
    const sourceMask = fittedMask(context, maskInput(inputs, 'source_alpha'), destination, FIT);
    const mask = fittedMask(context, maskInput(inputs, 'destination_alpha'), destination, FIT);
    // The shortest batch decides how many pictures come out.
    const batch = Math.min(...[source, sourceMask, destination, mask].map((one) => one.batch));
    const image = newImage(context, { ...destination, batch });
    const alpha = newMask(context, image);
    const { channels, width } = image;
    const [upper, lower] = [source.data, destination.data];
    const cover: Coverage = { source: 0, destination: 0 };
    for (let pixel = 0; pixel < alpha.data.length; pixel++) {
      if (pixel % width === 0) context.check();
      cover.source = fround(1 - (sourceMask.data[pixel] as number));
      cover.destination = fround(1 - (mask.data[pixel] as number));
      const covered = mode.alpha(cover.source, cover.destination);
      alpha.data[pixel] = 1 - covered;
      if (covered <= LEAST_ALPHA) continue;
      for (let i = pixel * channels; i < (pixel + 1) * channels; i++) {
        const above = fround((upper[i] as number) * cover.source);
        const below = fround((lower[i] as number) * cover.destination);
        const level = fround(mode.level(above, below, cover) / covered);
        image.data[i] = Math.min(1, Math.max(0, level));
      }
    }
    return { outputs: [image, alpha] };
  },
};

const requireSameChannels = (source: ImageValue, destination: ImageValue): void => {
  if (source.channels === destination.channels) return;
  throw new NodeFailure(
    'AssertionError',
    `source has ${source.channels} channels, destination ${destination.channels}: they must have as many`,
  );
};

/** v1 fits everything to the destination picture: bicubic, the middle kept. */
const FIT = { method: 'bicubic', crop: 'center' } as const;
