import type { NodeContext } from '../node.ts';

/** The part of the context that a resampling loop needs. */
export type ResampleContext = Pick<NodeContext, 'reserve' | 'check'>;

export type Size = { readonly width: number; readonly height: number };
