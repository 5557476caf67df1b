import { decodeFirst, decodeFrames, type ImageFile } from '../codecs/decode.ts';
import { pixelsWith, type DecodedPicture } from '../codecs/decode-still.ts';
import type {
  ImageValue,
  InputSpec,
  MaskValue,
  NodeContext,
  NodeDef,
  NodeResult,
} from '../node.ts';
import { frameOf, imageOfBytes, levelOf, newMask } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

/** v1's mask for a file without alpha, whatever the size of the picture. */
const NO_MASK = { height: 64, width: 64 } as const;

const CHANNELS = ['alpha', 'red', 'green', 'blue'] as const;

/** The offset of each channel in the four bytes of a decoded pixel. */
const BYTE_OF: { readonly [channel: string]: number } = { red: 0, green: 1, blue: 2, alpha: 3 };

/** The files that a user may choose are added when `/object_info` is answered for that user. */
const UPLOADED: InputSpec = [[], { image_upload: true }];

const LOADS = { pythonModule: 'nodes', fileInputs: ['image'] } as const;

/** The nodes that read image files. */
export const LOAD_NODES: readonly NodeDef[] = [
  typedNode({
    ...LOADS,
    name: 'LoadImage',
    displayName: 'Load Image',
    category: 'image',
    required: { image: UPLOADED },
    outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
    run: loadImage,
  }),
  typedNode({
    ...LOADS,
    name: 'LoadImageMask',
    displayName: 'Load Image (as Mask)',
    category: 'image',
    required: { image: UPLOADED, channel: [CHANNELS] },
    outputs: [{ type: 'MASK' }],
    run: loadImageMask,
  }),
  typedNode({
    ...LOADS,
    name: 'LoadImageOutput',
    displayName: 'Load Image (from Outputs)',
    description: 'Reads back a picture that an earlier run saved.',
    category: 'image',
    required: {
      image: [
        'COMBO',
        {
          image_upload: true,
          image_folder: 'output',
          remote: {
            route: '/internal/files/output',
            refresh_button: true,
            control_after_refresh: 'first',
          },
        },
      ],
    },
    outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
    experimental: true,
    run: loadImage,
  }),
];

type Chosen = { readonly image: string };

async function loadImage({ image }: Chosen, context: NodeContext): Promise<NodeResult> {
  const pictures = sameSize(await decodeFrames(await readImage(image, context)));
  context.check();
  return { outputs: [toImage(context, pictures), toMask(context, pictures)] };
}

/**
 * Loads a mask. Unlike LoadImage it takes one frame only, and a file without alpha gives an opaque
 * mask of its size.
 */
async function loadImageMask(
  { image, channel }: Chosen & { readonly channel: string },
  context: NodeContext,
): Promise<NodeResult> {
  const picture = await decodeFirst(await readImage(image, context));
  const { width, height } = picture;
  context.check();
  const mask = newMask(context, { batch: 1, height, width });
  copyChannel(pixelsWith(4, picture), mask.data, {
    offset: BYTE_OF[channel] ?? 0,
    inverted: channel === 'alpha',
  });
  return { outputs: [mask] };
}

async function readImage(name: string, context: NodeContext): Promise<ImageFile> {
  return { name, bytes: await context.readFile(name) };
}

/** Drops frames with another size than the first, as v1 does. */
function sameSize(pictures: readonly DecodedPicture[]): readonly DecodedPicture[] {
  const first = pictures[0];
  return pictures.filter(({ width, height }) => width === first?.width && height === first.height);
}

function toImage(context: NodeContext, pictures: readonly DecodedPicture[]): ImageValue {
  const { width = 0, height = 0 } = pictures[0] ?? {};
  const frames = pictures.map((picture) => pixelsWith(3, picture));
  return imageOfBytes(context, { height, width, channels: 3 }, frames);
}

function toMask(context: NodeContext, pictures: readonly DecodedPicture[]): MaskValue {
  const hasAlpha = pictures.some((picture) => picture.hasAlpha);
  const { width, height } = hasAlpha && pictures[0] ? pictures[0] : NO_MASK;
  const mask = newMask(context, { batch: pictures.length, height, width });
  if (!hasAlpha) return mask;
  for (const [i, picture] of pictures.entries()) {
    copyChannel(pixelsWith(4, picture), frameOf(mask, i), { offset: 3, inverted: true });
  }
  return mask;
}

type ChannelCopy = { readonly offset: number; readonly inverted: boolean };

function copyChannel(
  rgba: Uint8Array,
  target: Float32Array,
  { offset, inverted }: ChannelCopy,
): void {
  for (let i = 0; i < target.length; i++) {
    const level = levelOf(rgba[i * 4 + offset] as number);
    target[i] = inverted ? 1 - level : level;
  }
}
