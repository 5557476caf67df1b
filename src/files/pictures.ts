import { createFairSemaphore, createSemaphore } from '../lib/concurrency.ts';
import { MAX_PIXELS, countPixels, pictureFormatOf } from '../nodes/decoders.ts';
import { type Threads, createThreads } from '../lib/threads.ts';
import type { Logger } from '../observability/log.ts';

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

type Draw = (drawing: Drawing) => Promise<DrawnPicture>;

/** Draws pictures for users, who take turns. */
export type Pictures = {
  /** Reads and draws a picture. Fails only as `read` does. */
  draw(user: string, read: () => Promise<Drawing>): Promise<DrawnPicture>;
};

/** Each has its files in memory. They leave threads of Node's own pool for files and names. */
const MAX_DRAWINGS = 2;

/**
 * Creates the pictures. All drawings of one time together have at most as many pixels as one
 * picture may have.
 * @internal
 */
export function createPictures(draw: Draw): Pictures {
  const inTurn = createFairSemaphore(MAX_DRAWINGS);
  const withinPixels = createSemaphore(MAX_PIXELS / PIXEL_UNIT);
  return {
    draw: (user, read) =>
      inTurn(user, async () => {
        const drawing = await read();
        const pixels = await pixelsOf(drawing);
        if (typeof pixels === 'string') return { ok: false, reason: pixels };
        return withinPixels(() => draw(drawing), Math.ceil(pixels / PIXEL_UNIT));
      }),
  };
}

/** A release of the semaphore takes time in proportion to its units. */
const PIXEL_UNIT = 2 ** 20;

const NO_PICTURE = 'This is not a picture that can be shown.';
const TOO_MANY_PIXELS = 'The picture has more pixels than are decoded here.';
export const UNREADABLE = 'The picture could not be decoded.';

/** Returns the pixels of the larger picture, or why none is drawn: a mask and its original have one size. */
async function pixelsOf({ files }: Drawing): Promise<number | string> {
  if (files.some((bytes) => pictureFormatOf(bytes) === undefined)) return NO_PICTURE;
  const counts = await Promise.all(files.map((bytes) => countPixels(bytes))).catch(() => [0]);
  const count = Math.max(...counts);
  if (count > MAX_PIXELS) return TOO_MANY_PIXELS;
  return count > 0 ? count : UNREADABLE;
}

/** Draws pictures on worker threads, never on the thread that answers. */
export function openPictures(log: Logger): Pictures & { close(): Promise<void> } {
  const threads = createThreads({
    module: 'dist/files/draw-picture.js',
    // The decoder of bitmaps keeps its memory as long as its thread runs.
    min: 0,
    max: MAX_DRAWINGS,
    onError: (error) =>
      log.error({ event: 'pictures.thread_failed', err: error }, 'a thread for pictures failed'),
  });
  const pictures = createPictures((drawing) => drawOn(threads, drawing));
  return { ...pictures, close: () => threads.close() };
}

async function drawOn(threads: Threads, drawing: Drawing): Promise<DrawnPicture> {
  const files = drawing.files.map(movable);
  const task = { ...drawing, files } satisfies Drawing;
  const transferList = files.map(({ buffer }) => buffer);
  const end = await threads.run(task, { name: 'drawOnThread', transferList }).catch(reasonOf);
  return typeof end === 'string'
    ? { ok: false, reason: end }
    : { ok: true, bytes: Buffer.from((end as Uint8Array<ArrayBuffer>).buffer) };
}

/** Small buffers share their memory with others, and cannot be moved. */
function movable(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const isWhole = bytes.byteLength === bytes.buffer.byteLength;
  return isWhole ? (bytes as Uint8Array<ArrayBuffer>) : new Uint8Array(bytes);
}

/** Returns the reason when the bytes needed more memory than a thread has. Throws other failures. */
function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') return UNREADABLE;
  throw error;
}
