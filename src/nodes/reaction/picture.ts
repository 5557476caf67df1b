import type { ImageValue, NodeContext } from '../node.ts';
import type { Field } from './field.ts';
import { roundHalfEven, toBytes } from '../tensor.ts';

/** From empty to fully grown: night blue, violet, teal, sand, cream. */
const PALETTE = [
  [0.043, 0.047, 0.145],
  [0.208, 0.141, 0.431],
  [0.086, 0.443, 0.541],
  [0.447, 0.741, 0.541],
  [0.953, 0.831, 0.478],
  [0.996, 0.961, 0.878],
] as const;

/** A concentration few patterns exceed; it gets the last colour. */
const FULLY_GROWN = 0.36;

/** Colours the picture by how much has grown where. */
export const paintField = (
  context: Pick<NodeContext, 'check'>,
  { width, height, grown }: Field,
  image: ImageValue,
): void => {
  for (let y = 0; y < height; y++) {
    context.check();
    for (let x = 0; x < width; x++) {
      const level = grown[(y + 1) * (width + 2) + x + 1] as number;
      paintPixel(image.data, (y * width + x) * 3, level / FULLY_GROWN);
    }
  }
};

const paintPixel = (pixels: Float32Array, at: number, share: number): void => {
  const place = Math.min(1, share) * (PALETTE.length - 1);
  const stop = Math.min(PALETTE.length - 2, Math.floor(place));
  const [low, high] = [PALETTE[stop] ?? PALETTE[0], PALETTE[stop + 1] ?? PALETTE[0]];
  for (let c = 0; c < 3; c++) {
    const dark = low[c] as number;
    pixels[at + c] = dark + ((high[c] as number) - dark) * (place - stop);
  }
};

/** Side of the box v1 fits previews into, scaling up as well as down. */
const PREVIEW_BOX = 512;

/** The first picture as a preview in v1's manner. */
export const previewOf = async (image: ImageValue): Promise<Uint8Array> => {
  const { default: sharp } = await import('sharp');
  const { width, height } = image;
  const factor = PREVIEW_BOX / Math.max(width, height);
  return await sharp(toBytes(image, 0), { raw: { width, height, channels: 3 } })
    .resize({
      width: Math.max(1, roundHalfEven(width * factor)),
      height: Math.max(1, roundHalfEven(height * factor)),
      fit: 'fill',
      kernel: 'linear',
    })
    .jpeg({ quality: 95 })
    .toBuffer();
};
