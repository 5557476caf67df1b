import type { JsonObject } from '../../protocol/json.ts';
import type { NodeUi } from '../../protocol/v2.ts';
import { type Pixels, type NodeContext, type NodeDef, fail, type NodeResult } from '../node.ts';
import { numberedName, previewPrefix, savePath } from './save-path.ts';
import { encodePng, type MetadataText, metadataTexts } from '../codecs/encode-png.ts';
import { MASK_EXTRAS, greyPicture } from './region.ts';
import { combo, typedNode } from '../typed-node.ts';
import { encodeApng } from '../codecs/encode-apng.ts';
import { encodeWebp } from '../codecs/encode-webp.ts';

/** v1's zlib levels: files that stay are compressed more than previews. */
const COMPRESSION = { saved: 4, preview: 1 } as const;

/** The properties of the nodes that write pictures and pass them on. */
const SAVES = {
  category: 'image',
  pythonModule: 'nodes',
  hidden: { prompt: 'PROMPT', extra_pnginfo: 'EXTRA_PNGINFO' },
  outputs: [{ type: 'IMAGE', name: 'images' }],
  outputNode: true,
} as const;

/** The nodes that write still pictures. */
export const SAVE_NODES: readonly NodeDef[] = [
  typedNode({
    name: 'SaveImage',
    displayName: 'Save Image',
    description: 'Keeps pictures as PNG files among the outputs.',
    required: { images: ['IMAGE', {}], filename_prefix: ['STRING', { default: 'ComfyUI' }] },
    ...SAVES,
    run: async ({ images, filename_prefix: prefix }, context) => ({
      outputs: [images],
      ui: await saveStills(images, context, { prefix, temp: false, texts: metadataTexts(context) }),
    }),
  }),
  typedNode({
    name: 'PreviewImage',
    displayName: 'Preview Image',
    description: 'Shows pictures without keeping them.',
    required: { images: ['IMAGE'] },
    ...SAVES,
    run: async ({ images }, context) => ({
      outputs: [images],
      ui: await preview(images, context, metadataTexts(context)),
    }),
  }),
  typedNode({
    ...SAVES,
    ...MASK_EXTRAS,
    name: 'MaskPreview',
    displayName: 'Preview Mask',
    description: 'Shows masks as grey pictures without keeping them.',
    required: { mask: ['MASK', {}] },
    outputs: [{ type: 'MASK', name: 'mask' }],
    run: async ({ mask }, context) => ({
      outputs: [mask],
      ui: { ...(await preview(greyPicture(context, mask), context, [])), animated: [false] },
    }),
  }),
  typedNode({
    name: 'SaveImageWebsocket',
    displayName: 'Save Image (Websocket)',
    category: 'image',
    pythonModule: 'custom_nodes.websocket_image_save',
    required: { images: ['IMAGE'] },
    outputs: [],
    outputNode: true,
    alwaysRuns: true,
    run: sendImages,
  }),
];

type Destination = {
  readonly prefix: string;
  readonly temp: boolean;
  /** The metadata of each file. */
  readonly texts: readonly MetadataText[];
};

/** Shows pictures without keeping them. */
export function preview(
  images: Pixels,
  context: NodeContext,
  texts: readonly MetadataText[],
): Promise<NodeUi> {
  return saveStills(images, context, { prefix: previewPrefix(), temp: true, texts });
}

async function saveStills(images: Pixels, context: NodeContext, to: Destination): Promise<NodeUi> {
  const { width, height, batch } = images;
  if (batch < 1) return fail('IndexError', 'There is no picture in the batch');
  const { subfolder, stem } = savePath(to.prefix, { width, height, now: new Date() });
  const compressionLevel = to.temp ? COMPRESSION.preview : COMPRESSION.saved;
  const items: JsonObject[] = [];
  for (let i = 0; i < images.batch; i++) {
    context.check();
    const name = numberedName(stem, '_.png', i);
    const bytes = await encodePng(images, i, { compressionLevel, texts: to.texts });
    items.push(
      await context.save({ bytes, name, subfolder, contentType: 'image/png', temp: to.temp }),
    );
  }
  return { images: items };
}

/** Sends pictures, each with the progress message of its own step. v1 counts the steps from 0. */
async function sendImages(
  { images }: { readonly images: Pixels },
  context: NodeContext,
): Promise<NodeResult> {
  for (let i = 0; i < images.batch; i++) {
    const bytes = await encodePng(images, i, { compressionLevel: COMPRESSION.saved, texts: [] });
    await context.save({
      bytes,
      name: numberedName(`ComfyUI_websocket_${context.nodeId}`, '_.png'),
      subfolder: '',
      contentType: 'image/png',
      temp: true,
      websocket: true,
    });
    context.progress(i, images.batch);
  }
  return { outputs: [] };
}

const ANIMATED_INPUTS = {
  images: ['IMAGE', {}],
  filename_prefix: ['STRING', { default: 'ComfyUI', multiline: false }],
  fps: ['FLOAT', { default: 6.0, min: 0.01, max: 1000.0, step: 0.01 }],
} as const;

/** The effort of the WEBP encoder for each value of v1's `method`. */
const EFFORT: { readonly [method: string]: number } = { default: 4, fastest: 0, slowest: 6 };

const ANIMATION = {
  ...SAVES,
  pythonModule: 'comfy_extras.nodes_images',
  style: 'v3',
} as const;

/** The nodes that write a batch as one animated picture. */
export const SAVE_ANIMATED_NODES: readonly NodeDef[] = [
  typedNode({
    ...ANIMATION,
    name: 'SaveAnimatedWEBP',
    displayName: 'Save Animated WEBP',
    required: {
      ...ANIMATED_INPUTS,
      lossless: ['BOOLEAN', { default: true }],
      quality: ['INT', { default: 80, min: 0, max: 100 }],
      method: combo(Object.keys(EFFORT)),
    },
    async run(inputs, context) {
      const { images, fps, lossless, quality, method } = inputs;
      const common = { durationMs: Math.trunc(1000 / fps), texts: metadataTexts(context) };
      const effort = EFFORT[method] ?? 4;
      const bytes = await encodeWebp(images, { ...common, lossless, quality, effort });
      return saveAnimation(context, inputs, bytes, 'webp');
    },
  }),
  typedNode({
    ...ANIMATION,
    name: 'SaveAnimatedPNG',
    displayName: 'Save Animated PNG',
    required: {
      ...ANIMATED_INPUTS,
      compress_level: ['INT', { advanced: true, default: 4, min: 0, max: 9 }],
    },
    async run(inputs, context) {
      const { images, fps, compress_level: compressionLevel } = inputs;
      const common = { durationMs: Math.trunc(1000 / fps), texts: metadataTexts(context) };
      const bytes = await encodeApng(images, context, { ...common, compressionLevel });
      return saveAnimation(context, inputs, bytes, 'png');
    },
  }),
];

type Animation = { readonly images: Pixels; readonly filename_prefix: string };

async function saveAnimation(
  context: NodeContext,
  { images, filename_prefix: prefix }: Animation,
  bytes: Uint8Array,
  extension: 'webp' | 'png',
): Promise<NodeResult> {
  const { subfolder, stem } = savePath(prefix, { ...images, now: new Date() });
  const name = numberedName(stem, `_.${extension}`);
  const contentType = `image/${extension}`;
  const item = await context.save({ bytes, name, subfolder, contentType, temp: false });
  return { outputs: [images], ui: { images: [item], animated: [true] } };
}
