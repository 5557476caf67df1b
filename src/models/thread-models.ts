import { digest, perceptualHash } from './local-hash.ts';
import { imageBlur, imageQuantize, imageResize } from './local-image.ts';
import { proceduralImage } from './local-procedural.ts';
import { textSentiment, textStatistics, textTokens } from './local-text.ts';
import { tone } from './local-tone.ts';
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
