import { BASIC_NODES } from './image/basic.ts';
import { COMPOSE_NODES } from './image/compose.ts';
import { FILTER_NODES } from './filters/filter-nodes.ts';
import { LOAD_NODES } from './image/load.ts';
import { MASK_NODES } from './image/mask.ts';
import type { NodeDef } from './node.ts';
import { PRIMITIVE_NODES } from './primitive.ts';
import { GENERATOR_NODES } from './reaction/reaction-diffusion.ts';
import { SAVE_ANIMATED_NODES, SAVE_NODES } from './image/save.ts';
import { SCALE_NODES } from './image/scale.ts';
import { TEXT_NODES } from './text/text-nodes.ts';
import { TRANSFORM_NODES } from './image/transform.ts';

/** Every node class this server runs, by its v1 name. */
export const ALL_NODES: ReadonlyMap<string, NodeDef> = new Map(
  [
    ...SAVE_NODES,
    ...LOAD_NODES,
    ...SAVE_ANIMATED_NODES,
    ...BASIC_NODES,
    ...SCALE_NODES,
    ...FILTER_NODES,
    ...TRANSFORM_NODES,
    ...COMPOSE_NODES,
    ...MASK_NODES,
    ...PRIMITIVE_NODES,
    ...TEXT_NODES,
    ...GENERATOR_NODES,
  ].map((def) => [def.name, def]),
);
