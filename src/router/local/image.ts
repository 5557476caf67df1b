import type { FitEnum, KernelEnum, Sharp } from 'sharp';
import { InputError, type ThreadModel } from './thread-model.ts';
import { choice, fileField, inputSchema, integer } from './file-schema.ts';
import {
  PICTURE_FIELDS,
  MAX_SIDE,
  PICTURE_ANSWER,
  openInputPicture,
  writePicture,
} from './picture.ts';

type Size = { readonly width: number; readonly height: number };

/**
 * Refuses a size that is too large. With `outside` the longer side follows from the picture, so the
 * schema cannot bound it.
 */
async function refuseTooLarge(picture: Sharp, size: Size): Promise<void> {
  const { autoOrient: oriented } = await picture.metadata();
  const scale = Math.max(size.width / oriented.width, size.height / oriented.height);
  for (const side of ['width', 'height'] as const) {
    const pixels = Math.round(oriented[side] * scale);
    if (pixels <= MAX_SIDE) continue;
    const msg = `The ${side} would be ${pixels} pixels, more than ${MAX_SIDE}`;
    throw new InputError(side, {
      type: 'image_too_large',
      msg,
      ctx: { [`max_${side}`]: MAX_SIDE },
    });
  }
}

export const imageResize: ThreadModel = {
  model: 'image-resize',
  title: 'Resize a picture',
  description: 'Resamples a picture to a size, cropping or padding as asked.',
  files: ['image'],
  input: inputSchema({
    image: fileField('the picture'),
    width: integer({ min: 1, max: MAX_SIDE }, 'in pixels'),
    height: integer({ min: 1, max: MAX_SIDE }, 'in pixels'),
    fit: choice(['cover', 'contain', 'fill', 'inside', 'outside'], 'when the shapes differ'),
    kernel: choice(
      ['lanczos3', 'lanczos2', 'mitchell', 'cubic', 'linear', 'nearest'],
      'resampling',
    ),
    ...PICTURE_FIELDS,
  }),
  output: PICTURE_ANSWER,
  async compute(input, files) {
    const [width, height] = [input.width as number, input.height as number];
    const fit = input.fit as keyof FitEnum;
    const picture = await openInputPicture(files, 'image');
    if (fit === 'outside') await refuseTooLarge(picture, { width, height });
    const image = picture.resize({
      width,
      height,
      fit,
      kernel: input.kernel as keyof KernelEnum,
    });
    return await writePicture(image, input, 'image');
  },
};
