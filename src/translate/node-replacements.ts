import { type Json, type JsonObject, isJsonObject, memberOf } from '../protocol/json.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Graph, GraphNode } from '../protocol/v2.ts';
import { withNodes } from './graph.ts';

type InputMapping = { readonly new_id: string } & (
  | { readonly old_id: string }
  | { readonly set_value: Json }
);

type Replacement = {
  readonly newClass: string;
  readonly widgets?: readonly string[];
  /** Absent: the inputs keep their names. */
  readonly inputs?: readonly InputMapping[];
  readonly outputs?: readonly JsonObject[];
};

/** The classes that the original replaces, in its order. Each keeps the places of its outputs. */
const REPLACEMENTS: { readonly [oldClass: string]: Replacement } = {
  ResizeImagesByLongerEdge: {
    newClass: 'ImageScaleToMaxDimension',
    widgets: ['longer_edge'],
    inputs: [
      { new_id: 'image', old_id: 'images' },
      { new_id: 'largest_size', old_id: 'longer_edge' },
      { new_id: 'upscale_method', set_value: 'lanczos' },
    ],
    outputs: [{ new_idx: 0, old_idx: 0 }],
  },
  ImageBatch: {
    newClass: 'BatchImagesNode',
    inputs: [
      { new_id: 'images.image0', old_id: 'image1' },
      { new_id: 'images.image1', old_id: 'image2' },
    ],
  },
  ImageScaleBy: {
    newClass: 'ResizeImageMaskNode',
    widgets: ['upscale_method', 'scale_by'],
    inputs: [
      { new_id: 'input', old_id: 'image' },
      { new_id: 'resize_type', set_value: 'scale by multiplier' },
      { new_id: 'resize_type.multiplier', old_id: 'scale_by' },
      { new_id: 'scale_method', old_id: 'upscale_method' },
    ],
  },
  T2IAdapterLoader: {
    newClass: 'ControlNetLoader',
    inputs: [{ new_id: 'control_net_name', old_id: 't2i_adapter_name' }],
  },
  Load3DAnimation: { newClass: 'Load3D' },
  Preview3DAnimation: { newClass: 'Preview3D' },
  SDV_img2vid_Conditioning: { newClass: 'SVD_img2vid_Conditioning' },
  'ConditioningAverage ': { newClass: 'ConditioningAverage' },
};

/** The answer to `GET /node_replacements`. */
export const NODE_REPLACEMENTS: JsonObject = Object.fromEntries(
  Object.entries(REPLACEMENTS).map(([oldClass, { newClass, widgets, inputs, outputs }]) => [
    oldClass,
    [
      {
        new_node_id: newClass,
        old_node_id: oldClass,
        old_widget_ids: widgets ?? null,
        input_mapping: inputs ?? null,
        output_mapping: outputs ?? null,
      },
    ],
  ]),
);

/**
 * Replaces nodes whose class is not installed by those of the class that took its place, if that one
 * is. Returns the same graph when there is none.
 */
export function withReplacements(graph: Graph, info: ObjectInfo): Graph {
  const replaced = Object.entries(graph).flatMap(([id, node]) => {
    const replacement = Object.hasOwn(info, node.class_type)
      ? undefined
      : Object.hasOwn(REPLACEMENTS, node.class_type) && REPLACEMENTS[node.class_type];
    const isUsable = replacement && Object.hasOwn(info, replacement.newClass);
    return isUsable && isJsonObject(node.inputs as Json)
      ? [[id, replacedNode(node, replacement)] as const]
      : [];
  });
  return withNodes(graph, new Map(replaced));
}

function replacedNode(node: GraphNode, { newClass, inputs }: Replacement): GraphNode {
  const mapped = inputs?.flatMap((mapping): (readonly [string, Json])[] => {
    if ('set_value' in mapping) return [[mapping.new_id, mapping.set_value]];
    const value = memberOf(node.inputs as JsonObject, mapping.old_id);
    return value === undefined ? [] : [[mapping.new_id, value]];
  });
  const inputsOfNew = mapped ? Object.fromEntries(mapped) : node.inputs;
  return { _meta: {}, ...node, class_type: newClass, inputs: inputsOfNew };
}
