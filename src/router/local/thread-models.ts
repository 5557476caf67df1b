import { digest } from './hash.ts';
import { imageResize } from './image.ts';
import { proceduralImage } from './procedural-image.ts';
import type { ThreadModel } from './thread-model.ts';

/** Every model that runs on a worker thread. */
export const THREAD_MODELS: readonly ThreadModel[] = [imageResize, proceduralImage, digest];
