import { BASIC_NODES } from './image/basic.ts';
import { BATCH_NODES } from './image/batch.ts';
import { COMPOSE_NODES } from './image/compose.ts';
import { CROP_NODES } from './image/crop.ts';
import { FILTER_NODES } from './filters/filter-nodes.ts';
import { LOAD_NODES } from './image/load.ts';
import { LOGIC_NODES } from './logic.ts';
import { MATH_NODE } from './math/math-node.ts';
import { MASK_NODES } from './image/mask.ts';
import type { NodeDef } from './node.ts';
import { PRIMITIVE_NODES } from './primitive.ts';
import { GENERATOR_NODES } from './reaction/reaction-diffusion.ts';
import { RESIZE_NODE } from './image/resize.ts';
import { SAVE_ANIMATED_NODES, SAVE_NODES } from './image/save.ts';
import { SCALE_NODES } from './image/scale.ts';
import { FORMAT_NODE } from './text/format.ts';
import { SAVE_TEXT_NODE } from './text/save-text.ts';
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
    FORMAT_NODE,
    SAVE_TEXT_NODE,
    ...BATCH_NODES,
    RESIZE_NODE,
    ...CROP_NODES,
    ...LOGIC_NODES,
    MATH_NODE,
    ...GENERATOR_NODES,
  ].map((def) => [def.name, def]),
);
