import { createFairSemaphore, createSemaphore } from '../lib/concurrency.ts';
import { MAX_PIXELS, countPixels, pictureFormatOf } from '../nodes/decoders.ts';

/** A way in which `/view` shows a picture other than its own bytes. */
export type Rendering =
  | { readonly as: 'rgb' | 'alpha' }
  | {
      readonly as: 'preview';
      readonly format: 'webp' | 'jpeg';
      readonly quality: number;
      readonly opaque: boolean;
    };

/** A picture to draw. */
export type Drawing = {
  /** `masked`: as a PNG with the alpha of a mask. */
  readonly how: Rendering | { readonly as: 'masked' };
  /** The picture as it is stored, and the mask. */
  readonly files: readonly Uint8Array[];
};

/** The file of the new picture, or one sentence that says why there is none. */
export type DrawnPicture =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly reason: string };

export type Draw = (drawing: Drawing) => Promise<DrawnPicture>;

/** Draws pictures for users, who take turns. */
export type Pictures = {
  /** Reads and draws a picture. Fails only as `read` does. */
  draw(user: string, read: () => Promise<Drawing>): Promise<DrawnPicture>;
};

/** Each has its files in memory. They leave threads of Node's own pool for files and names. */
export const MAX_DRAWINGS = 2;

/**
 * Creates the pictures. All drawings of one time together have at most as many pixels as one
 * picture may have.
 */
export function createPictures(draw: Draw): Pictures {
  const inTurn = createFairSemaphore(MAX_DRAWINGS);
  const withinPixels = createSemaphore(MAX_PIXELS / PIXEL_UNIT);
  return {
    draw: (user, read) =>
      inTurn(user, async () => {
        const drawing = await read();
        const pixels = await pixelsOf(drawing);
        if (!pixels.ok) return pixels;
        return withinPixels(() => draw(drawing), Math.ceil(pixels.count / PIXEL_UNIT));
      }),
  };
}

/** A release of the semaphore takes time in proportion to its units. */
const PIXEL_UNIT = 2 ** 20;

const NO_PICTURE = 'This is not a picture that can be shown.';
const TOO_MANY_PIXELS = 'The picture has more pixels than are decoded here.';
export const UNREADABLE = 'The picture could not be decoded.';

type PixelCount = { readonly ok: true; readonly count: number };

/** Returns the pixels of the larger picture: a mask and its original have one size. */
async function pixelsOf({ files }: Drawing): Promise<PixelCount | (DrawnPicture & { ok: false })> {
  if (files.some((bytes) => pictureFormatOf(bytes) === undefined))
    return { ok: false, reason: NO_PICTURE };
  const counts = await Promise.all(files.map((bytes) => countPixels(bytes))).catch(() => [0]);
  const count = Math.max(...counts);
  if (count > MAX_PIXELS) return { ok: false, reason: TOO_MANY_PIXELS };
  return count > 0 ? { ok: true, count } : { ok: false, reason: UNREADABLE };
}
