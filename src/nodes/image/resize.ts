import type { InputSpec, NodeContext, NodeDef, Pixels } from '../node.ts';
import { RESAMPLE_METHODS, type UpscaleOptions, upscale } from '../resample/resample.ts';
import { type Size, roundHalfEven } from '../tensor.ts';
import { combo, type ValueOf, typedNode } from '../typed-node.ts';
import { cutOut } from './region.ts';
import { MEGAPIXEL, fittedSize, missingSide, pixelsFactor, scaledSize } from './scale.ts';

const LENGTH = ['INT', { default: 512, min: 0, max: 16384, step: 1 }] as const;
const CROP = combo(['disabled', 'center'], { default: 'center' });

/** One way to say the new size, and the inputs for it. */
const option = <const Key extends string, const Required extends { [name: string]: InputSpec }>(
  key: Key,
  required: Required,
) => ({ key, inputs: { required } });

const WAYS = [
  option('scale dimensions', { width: LENGTH, height: LENGTH, crop: CROP }),
  option('scale by multiplier', {
    multiplier: ['FLOAT', { default: 1.0, min: 0.01, max: 8.0, step: 0.01 }],
  }),
  option('scale longer dimension', { longer_size: LENGTH }),
  option('scale shorter dimension', { shorter_size: LENGTH }),
  option('scale width', { width: LENGTH }),
  option('scale height', { height: LENGTH }),
  option('scale total pixels', {
    megapixels: ['FLOAT', { default: 1.0, min: 0.01, max: 16.0, step: 0.01 }],
  }),
  option('match size', { match: ['IMAGE,MASK', {}], crop: CROP }),
  option('scale to multiple', {
    multiple: ['INT', { default: 8, min: 1, max: 16384, step: 1 }],
  }),
] as const;

/** The node that changes the size of a picture or a mask in one of several ways. */
export const RESIZE_NODE: NodeDef = typedNode({
  name: 'ResizeImageMaskNode',
  displayName: 'Resize Image/Mask',
  description: 'Changes the size of pictures or masks.',
  category: 'image/transform',
  pythonModule: 'comfy_extras.nodes_post_processing',
  style: 'v3',
  required: {
    input: [
      'COMFY_MATCHTYPE_V3',
      { template: { template_id: 'input_type', allowed_types: 'IMAGE,MASK' } },
    ],
    resize_type: ['COMFY_DYNAMICCOMBO_V3', { options: WAYS }],
    scale_method: combo(RESAMPLE_METHODS, { default: 'area' }),
  },
  outputs: [{ type: 'COMFY_MATCHTYPE_V3', name: 'resized', matchType: 'input_type' }],
  run({ input, resize_type: way, scale_method: method }, context) {
    const target = targetOf(input, way);
    if (!target) return { outputs: [input] };
    const resized = upscale(context, input, { ...target, method });
    return { outputs: [middleOf(context, resized, target.cut)] };
  },
});

type Way = ValueOf<readonly ['COMFY_DYNAMICCOMBO_V3', { readonly options: typeof WAYS }]>;

type Target = Omit<UpscaleOptions, 'method'> & {
  /** The size to which the middle of the scaled picture is cut. */
  readonly cut?: Size;
};

/** Returns the size that the inputs ask for; `undefined` when the picture stays as it is. */
function targetOf(image: Size, way: Way): Target | undefined {
  switch (way.choice) {
    case 'scale dimensions': {
      const size = sides(image, way);
      return size && { ...size, crop: way.crop };
    }
    case 'scale by multiplier':
      return scaledSize(image, way.multiplier);
    case 'scale longer dimension':
      return fittedSize(image, way.longer_size);
    case 'scale shorter dimension':
      return shorterFitted(image, way.shorter_size);
    case 'scale width':
      return sides(image, { width: way.width, height: 0 });
    case 'scale height':
      return sides(image, { width: 0, height: way.height });
    case 'scale total pixels':
      return scaledSize(image, pixelsFactor(image, Math.trunc(way.megapixels * MEGAPIXEL)));
    case 'match size': {
      const { width, height } = way.match;
      return { width, height, crop: way.crop };
    }
    case 'scale to multiple':
      return covering(image, way.multiple);
  }
}

/** A side of 0 follows from the other one; without both, the picture stays. */
function sides(image: Size, size: Size): Size | undefined {
  return size.width === 0 && size.height === 0 ? undefined : missingSide(image, size);
}

const shorterFitted = ({ width, height }: Size, shorter: number): Size => ({
  width: width <= height ? shorter : roundHalfEven((width / height) * shorter),
  height: height <= width ? shorter : roundHalfEven((height / width) * shorter),
});

/** Covers the largest size below that has multiples as sides; the rest is cut off. */
function covering({ width, height }: Size, multiple: number): Target | undefined {
  const cut = {
    width: width - (width % multiple),
    height: height - (height % multiple),
  };
  const isThere = cut.width === width && cut.height === height;
  if (isThere || cut.width === 0 || cut.height === 0) return undefined;
  const [across, down] = [cut.width / width, cut.height / height];
  return across >= down
    ? { width: cut.width, height: Math.max(cut.height, Math.ceil(height * across)), cut }
    : { width: Math.max(cut.width, Math.ceil(width * down)), height: cut.height, cut };
}

function middleOf(context: NodeContext, image: Pixels, size: Size = image): Pixels {
  if (size.width === image.width && size.height === image.height) return image;
  const [x, y] = [(image.width - size.width) >> 1, (image.height - size.height) >> 1];
  return cutOut(context, image, { x, y, ...size });
}
