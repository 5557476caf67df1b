import type { ImageValue } from '../node.ts';
import type { LoopContext, Size } from '../tensor.ts';

/** Scales pictures to exactly that size. */
export type Resampler = (context: LoopContext, image: ImageValue, size: Size) => ImageValue;
