import type { FitEnum, KernelEnum, Sharp } from 'sharp';
import { InputFault, type ThreadModel } from './thread-model.ts';
import {
  choice,
  decimal,
  fileAnswer,
  fileField,
  inputSchema,
  integer,
  numberOf,
  outputField,
  textOf,
} from './file-schema.ts';
import {
  ENCODING,
  IMAGE_FACTS,
  IMAGE_TYPES,
  MAX_SIDE,
  encoded,
  openPicture,
  writePicture,
} from './picture.ts';

const PICTURE_IN = { image: fileField('the picture') };
const PICTURE_OUT = { ...ENCODING, output: outputField('base64', 'asset', 'binary') };
const ANSWER = fileAnswer('image', IMAGE_TYPES, IMAGE_FACTS);

type Size = { readonly width: number; readonly height: number };

/** The longer side of a picture that covers a size without being cropped is nobody's to choose. */
async function refuseTooLarge(picture: Sharp, size: Size): Promise<void> {
  const { autoOrient: given } = await picture.metadata();
  const scale = Math.max(size.width / given.width, size.height / given.height);
  for (const side of ['width', 'height'] as const) {
    const pixels = Math.round(given[side] * scale);
    if (pixels <= MAX_SIDE) continue;
    const msg = `The ${side} would be ${pixels} pixels, more than ${MAX_SIDE}`;
    throw new InputFault(side, {
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
    ...PICTURE_IN,
    width: integer({ min: 1, max: MAX_SIDE }, 'in pixels'),
    height: integer({ min: 1, max: MAX_SIDE }, 'in pixels'),
    fit: choice(['cover', 'contain', 'fill', 'inside', 'outside'], 'when the shapes differ'),
    kernel: choice(
      ['lanczos3', 'lanczos2', 'mitchell', 'cubic', 'linear', 'nearest'],
      'resampling',
    ),
    ...PICTURE_OUT,
  }),
  output: ANSWER,
  async compute(input, files) {
    const [width, height] = [numberOf(input, 'width'), numberOf(input, 'height')];
    const fit = textOf(input, 'fit') as keyof FitEnum;
    const picture = await openPicture(files, 'image');
    if (fit === 'outside') await refuseTooLarge(picture, { width, height });
    const image = picture.resize({
      width,
      height,
      fit,
      kernel: textOf(input, 'kernel') as keyof KernelEnum,
    });
    return await writePicture(image, input, 'image');
  },
};

export const imageBlur: ThreadModel = {
  model: 'image-blur',
  title: 'Blur a picture',
  description: 'Gaussian blur.',
  files: ['image'],
  input: inputSchema({
    ...PICTURE_IN,
    sigma: decimal({ min: 0.3, max: 100 }, 'standard deviation in pixels'),
    ...PICTURE_OUT,
  }),
  output: ANSWER,
  async compute(input, files) {
    const image = (await openPicture(files, 'image')).blur(numberOf(input, 'sigma'));
    return await writePicture(image, input, 'image');
  },
};

export const imageQuantize: ThreadModel = {
  model: 'image-quantize',
  title: 'Reduce the colours of a picture',
  description: 'Chooses a palette and writes a PNG in its colours.',
  files: ['image'],
  input: inputSchema({
    ...PICTURE_IN,
    colors: integer({ min: 2, max: 256 }, 'most colours of the palette'),
    dither: decimal({ min: 0, max: 1, default: 1 }, 'strength of the error diffusion'),
    output: outputField('base64', 'asset', 'binary'),
  }),
  output: fileAnswer('image', ['image/png'], IMAGE_FACTS),
  async compute(input, files) {
    const image = await openPicture(files, 'image');
    const colours = numberOf(input, 'colors');
    const dither = numberOf(input, 'dither');
    return await encoded(image.png({ palette: true, colours, dither }), 'image');
  },
};
