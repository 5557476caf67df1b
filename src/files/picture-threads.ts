import { type Threads, createThreads } from '../lib/threads.ts';
import type { Logger } from '../observability/log.ts';
import {
  type Drawing,
  type DrawnPicture,
  MAX_DRAWINGS,
  type Pictures,
  UNREADABLE,
  createPictures,
} from './pictures.ts';

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
