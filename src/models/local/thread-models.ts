import { digest, perceptualHash } from './hash.ts';
import { imageBlur, imageQuantize, imageResize } from './image.ts';
import { proceduralImage } from './procedural-image.ts';
import { textSentiment, textStatistics, textTokens } from './text.ts';
import { tone } from './tone.ts';
import type { ThreadModel } from './thread-model.ts';

/** Every model that runs on a worker thread. */
export const THREAD_MODELS: readonly ThreadModel[] = [
  imageResize,
  imageBlur,
  imageQuantize,
  proceduralImage,
  perceptualHash,
  digest,
  textStatistics,
  textSentiment,
  textTokens,
  tone,
];
