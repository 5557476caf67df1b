import { decodeFrames } from '../codecs/decode.ts';
import { pixelsWith, type DecodedPicture } from '../codecs/decode-still.ts';
import type { Pixels, InputSpec, NodeContext, NodeDef, NodeResult } from '../node.ts';
import { channelOf } from './region.ts';
import { frameOf, levelOf, newMask, pixelsOfBytes } from '../tensor.ts';
import { typedNode } from '../typed-node.ts';

/** v1's mask for a file that cannot have alpha, whatever the size of the picture. */
const NO_MASK = { height: 64, width: 64 } as const;

const COLOURS = ['red', 'green', 'blue'];

/** The files that a user may choose are added when `/object_info` is answered for that user. */
const UPLOADED: InputSpec = [[], { image_upload: true }];

const LOADS = { category: 'image', pythonModule: 'nodes', fileInputs: ['image'] } as const;

/** The nodes that read image files. */
export const LOAD_NODES: readonly NodeDef[] = [
  typedNode({
    ...LOADS,
    name: 'LoadImage',
    displayName: 'Load Image',
    required: { image: UPLOADED },
    outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
    run: loadImage,
  }),
  typedNode({
    ...LOADS,
    name: 'LoadImageMask',
    displayName: 'Load Image (as Mask)',
    required: { image: UPLOADED, channel: [['alpha', ...COLOURS]] },
    outputs: [{ type: 'MASK' }],
    run: loadImageMask,
  }),
  typedNode({
    ...LOADS,
    name: 'LoadImageOutput',
    displayName: 'Load Image (from Outputs)',
    description: 'Reads back a picture that an earlier run saved.',
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
  const pictures = await readPictures(image, context);
  return { outputs: [toImage(context, pictures), toMask(context, pictures)] };
}

async function loadImageMask(
  { image, channel }: Chosen & { readonly channel: string },
  context: NodeContext,
): Promise<NodeResult> {
  const pictures = await readPictures(image, context);
  if (channel === 'alpha') return { outputs: [toMask(context, pictures)] };
  // Other words can come through a link only. They mean the first channel, as in v1.
  const index = Math.max(0, COLOURS.indexOf(channel));
  return { outputs: [channelOf(context, toImage(context, pictures), index)] };
}

async function readPictures(
  name: string,
  context: NodeContext,
): Promise<readonly DecodedPicture[]> {
  const pictures = await decodeFrames({ name, bytes: await context.readFile(name) });
  context.check();
  // Frames with another size than the first are dropped, as v1 does.
  const [first] = pictures;
  return pictures.filter(({ width, height }) => width === first?.width && height === first.height);
}

function toImage(context: NodeContext, pictures: readonly DecodedPicture[]): Pixels {
  const { width = 0, height = 0 } = pictures[0] ?? {};
  const frames = pictures.map((picture) => pixelsWith(3, picture));
  return pixelsOfBytes(
    context,
    { kind: 'image', batch: frames.length, height, width, channels: 3 },
    frames,
  );
}

function toMask(context: NodeContext, pictures: readonly DecodedPicture[]): Pixels {
  const hasAlpha = pictures.some((picture) => picture.hasAlpha);
  const { width, height } = hasAlpha && pictures[0] ? pictures[0] : NO_MASK;
  const mask = newMask(context, { batch: pictures.length, height, width });
  if (!hasAlpha) return mask;
  for (const [index, picture] of pictures.entries()) {
    const rgba = pixelsWith(4, picture);
    const levels = frameOf(mask, index);
    for (let i = 0; i < levels.length; i++) levels[i] = 1 - levelOf(rgba[i * 4 + 3] as number);
  }
  return mask;
}
