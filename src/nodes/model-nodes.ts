import type { DescribedNode } from './node.ts';
import { LATENTS } from './model/latents.ts';
import { LOADERS } from './model/loaders.ts';
import { SAMPLING } from './model/sampling.ts';

/**
 * The classes of text-to-image graphs, as a v1 server without a model describes them. Programs read
 * the names of samplers and models from these. A graph with one of them is refused, as such a
 * server refuses it.
 */
export const MODEL_NODES: readonly DescribedNode[] = [...LOADERS, ...SAMPLING, ...LATENTS];
