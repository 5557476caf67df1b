import type { ImageValue, Inputs, InputSpec, NodeContext, NodeDef, NodeResult } from '../node.ts';
import { encodeApng } from '../codecs/encode-apng.ts';
import { fileName, savePath } from './save-path.ts';
import { metadataTexts } from '../codecs/encode-png.ts';
import { encodeWebp } from '../codecs/encode-webp.ts';
import { boolInput, floatInput, imageInput, intInput, stringInput } from '../tensor.ts';

const COMMON: { readonly [name: string]: InputSpec } = {
  images: ['IMAGE'],
  filename_prefix: ['STRING', { default: 'ComfyUI' }],
  fps: ['FLOAT', { default: 6.0, min: 0.01, max: 1000.0, step: 0.01 }],
};

const HIDDEN = { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' } as const;

/** The effort of the WEBP encoder, by v1's `method`. */
const EFFORT: { readonly [method: string]: number } = { default: 4, fastest: 0, slowest: 6 };

/** The nodes that write a batch as one moving picture. */
export const SAVE_ANIMATED_NODES: readonly NodeDef[] = [
  {
    name: 'SaveAnimatedWEBP',
    category: 'image/animation',
    pythonModule: 'comfy_extras.nodes_images',
    required: {
      ...COMMON,
      lossless: ['BOOLEAN', { default: true }],
      quality: ['INT', { default: 80, min: 0, max: 100 }],
      method: [Object.keys(EFFORT)],
    },
    hidden: HIDDEN,
    outputs: [],
    outputNode: true,
    run: saveWebp,
  },
  {
    name: 'SaveAnimatedPNG',
    category: 'image/animation',
    pythonModule: 'comfy_extras.nodes_images',
    required: { ...COMMON, compress_level: ['INT', { default: 4, min: 0, max: 9 }] },
    hidden: HIDDEN,
    outputs: [],
    outputNode: true,
    run: saveApng,
  },
];

async function saveWebp(inputs: Inputs, context: NodeContext): Promise<NodeResult> {
  const images = imageInput(inputs, 'images');
  const bytes = await encodeWebp(images, {
    durationMs: frameMs(inputs),
    lossless: boolInput(inputs, 'lossless'),
    quality: intInput(inputs, 'quality'),
    effort: EFFORT[stringInput(inputs, 'method')] ?? 4,
    texts: metadataTexts(context),
  });
  return save(inputs, context, { images, bytes, extension: 'webp', contentType: 'image/webp' });
}

async function saveApng(inputs: Inputs, context: NodeContext): Promise<NodeResult> {
  const images = imageInput(inputs, 'images');
  const bytes = await encodeApng(images, context, {
    durationMs: frameMs(inputs),
    compressionLevel: intInput(inputs, 'compress_level'),
    texts: metadataTexts(context),
  });
  return save(inputs, context, { images, bytes, extension: 'png', contentType: 'image/png' });
}

type Animation = {
  readonly images: ImageValue;
  readonly bytes: Uint8Array;
  readonly extension: string;
  readonly contentType: string;
};

/** v1 leaves `%batch_num%` standing here: there is one file. */
async function save(inputs: Inputs, context: NodeContext, made: Animation): Promise<NodeResult> {
  const prefix = stringInput(inputs, 'filename_prefix');
  const { subfolder, stem } = savePath(prefix, { ...made.images, now: new Date() });
  const counter = await context.nextCounter({ temp: false, subfolder }, stem);
  const name = fileName(stem, counter, made.extension);
  const { bytes, contentType } = made;
  const item = await context.save({ bytes, name, subfolder, contentType, temp: false });
  return { outputs: [], ui: { images: [item], animated: [true] } };
}

function frameMs(inputs: Inputs): number {
  return Math.trunc(1000 / floatInput(inputs, 'fps'));
}
