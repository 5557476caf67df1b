import type { JsonObject } from '../../protocol/json.ts';
import type {
  ImageValue,
  Inputs,
  InputSpec,
  MaskValue,
  NodeContext,
  NodeDef,
  NodeResult,
} from '../node.ts';
import { fileName, previewPrefix, savePath } from './save-path.ts';
import { encodePng, metadataTexts } from '../codecs/encode-png.ts';
import {
  imageInput,
  maskInput,
  newImage,
  stringInput,
  boolInput,
  floatInput,
  intInput,
} from '../tensor.ts';
import { encodeApng } from '../codecs/encode-apng.ts';
import { encodeWebp } from '../codecs/encode-webp.ts';

/** zlib levels of v1: files that stay are packed harder than previews. */
const COMPRESSION = { saved: 4, preview: 1 } as const;

/** The inputs and properties of all nodes that write pictures; the files contain the prompt. */
const SAVES = {
  hidden: { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' },
  outputs: [],
  outputNode: true,
  isBriefWhenSmall: true,
} as const;

const PREFIX: InputSpec = ['STRING', { default: 'ComfyUI' }];

/** The nodes that write still pictures. */
export const SAVE_NODES: readonly NodeDef[] = [
  {
    name: 'SaveImage',
    displayName: 'Save Image',
    description: 'Keeps pictures as PNG files among the outputs.',
    category: 'image',
    pythonModule: 'nodes',
    required: { images: ['IMAGE', {}], filename_prefix: PREFIX },
    ...SAVES,
    run: (inputs, context) =>
      saveStills(imageInput(inputs, 'images'), context, {
        prefix: stringInput(inputs, 'filename_prefix'),
        temp: false,
      }),
  },
  {
    name: 'PreviewImage',
    displayName: 'Preview Image',
    description: 'Shows pictures without keeping them.',
    category: 'image',
    pythonModule: 'nodes',
    required: { images: ['IMAGE'] },
    ...SAVES,
    run: (inputs, context) => preview(imageInput(inputs, 'images'), context),
  },
  {
    name: 'MaskPreview',
    description: 'Shows masks as grey pictures without keeping them.',
    category: 'mask',
    pythonModule: 'comfy_extras.nodes_mask',
    required: { mask: ['MASK'] },
    ...SAVES,
    run: (inputs, context) => preview(greyImage(context, maskInput(inputs, 'mask')), context),
  },
  {
    name: 'SaveImageWebsocket',
    category: 'api/image',
    pythonModule: 'custom_nodes.websocket_image_save',
    required: { images: ['IMAGE'] },
    outputs: [],
    outputNode: true,
    alwaysRuns: true,
    run: sendImages,
  },
];

type Destination = {
  readonly prefix: string;
  readonly temp: boolean;
  /** It is new, by chance: no file has a number of it. */
  readonly isNewPrefix?: boolean;
};

function preview(images: ImageValue, context: NodeContext): Promise<NodeResult> {
  return saveStills(images, context, { prefix: previewPrefix(), temp: true, isNewPrefix: true });
}

async function saveStills(
  images: ImageValue,
  context: NodeContext,
  to: Destination,
): Promise<NodeResult> {
  const { width, height } = images;
  const { subfolder, stem } = savePath(to.prefix, { width, height, now: new Date() });
  const compressionLevel = to.temp ? COMPRESSION.preview : COMPRESSION.saved;
  const texts = metadataTexts(context);
  const items: JsonObject[] = [];
  let counter = 0;
  for (let i = 0; i < images.batch; i++) {
    context.check();
    // v1 counts on within a batch; another job may have taken numbers meanwhile.
    counter++;
    if (!to.isNewPrefix)
      counter = Math.max(counter, await context.nextCounter({ temp: to.temp, subfolder }, stem));
    const name = fileName(stem.replaceAll('%batch_num%', String(i)), counter, 'png');
    const bytes = await encodePng(images, i, { compressionLevel, texts });
    items.push(
      await context.save({ bytes, name, subfolder, contentType: 'image/png', temp: to.temp }),
    );
  }
  return { outputs: [], ui: { images: items } };
}

/** Each picture belongs to the progress message of its own step, which v1 counts from 0. */
async function sendImages(inputs: Inputs, context: NodeContext): Promise<NodeResult> {
  const images = imageInput(inputs, 'images');
  for (let i = 0; i < images.batch; i++) {
    const bytes = await encodePng(images, i, { compressionLevel: COMPRESSION.saved, texts: [] });
    await context.save({
      bytes,
      name: fileName(`ComfyUI_websocket_${context.nodeId}`, i + 1, 'png'),
      subfolder: '',
      contentType: 'image/png',
      temp: true,
      websocket: true,
    });
    context.progress(i, images.batch);
  }
  return { outputs: [] };
}

function greyImage(context: NodeContext, mask: MaskValue): ImageValue {
  const { batch, height, width } = mask;
  const image = newImage(context, { batch, height, width, channels: 3 });
  for (let i = 0; i < mask.data.length; i++) image.data.fill(mask.data[i] ?? 0, i * 3, i * 3 + 3);
  return image;
}

const ANIMATED_INPUTS: { readonly [name: string]: InputSpec } = {
  images: ['IMAGE'],
  filename_prefix: ['STRING', { default: 'ComfyUI' }],
  fps: ['FLOAT', { default: 6.0, min: 0.01, max: 1000.0, step: 0.01 }],
};

/** The effort of the WEBP encoder, by v1's `method`. */
const EFFORT: { readonly [method: string]: number } = { default: 4, fastest: 0, slowest: 6 };

const ANIMATION = {
  ...SAVES,
  category: 'image/animation',
  pythonModule: 'comfy_extras.nodes_images',
} as const;

/** The nodes that write a batch as one moving picture. */
export const SAVE_ANIMATED_NODES: readonly NodeDef[] = [
  {
    ...ANIMATION,
    name: 'SaveAnimatedWEBP',
    required: {
      ...ANIMATED_INPUTS,
      lossless: ['BOOLEAN', { default: true }],
      quality: ['INT', { default: 80, min: 0, max: 100 }],
      method: [Object.keys(EFFORT)],
    },
    run: saveWebp,
  },
  {
    ...ANIMATION,
    name: 'SaveAnimatedPNG',
    required: { ...ANIMATED_INPUTS, compress_level: ['INT', { default: 4, min: 0, max: 9 }] },
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

/** v1 leaves `%batch_num%` standing here: there is one file. */
async function save(
  inputs: Inputs,
  context: NodeContext,
  made: { images: ImageValue; bytes: Uint8Array; extension: string; contentType: string },
): Promise<NodeResult> {
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
