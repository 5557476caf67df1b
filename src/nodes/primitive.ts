import { type JsonObject, LosslessNumber } from '../protocol/json.ts';
import type { NodeDef } from './node.ts';

/** v1's bounds, which a double cannot hold. */
const LONG_RANGE = {
  min: new LosslessNumber('-9223372036854775807'),
  max: new LosslessNumber('9223372036854775807'),
} as const;

type Primitive = readonly [name: string, displayName: string, type: string, options: JsonObject];

const PRIMITIVES: readonly Primitive[] = [
  ['PrimitiveString', 'Text', 'STRING', { multiline: false }],
  ['PrimitiveStringMultiline', 'Text (Multiline)', 'STRING', { multiline: true }],
  ['PrimitiveInt', 'Int', 'INT', { ...LONG_RANGE, control_after_generate: 'fixed' }],
  ['PrimitiveFloat', 'Float', 'FLOAT', { ...LONG_RANGE, step: 0.1 }],
  ['PrimitiveBoolean', 'Boolean', 'BOOLEAN', {}],
];

/** The nodes that pass on one literal. */
export const PRIMITIVE_NODES: readonly NodeDef[] = PRIMITIVES.map(
  ([name, displayName, type, options]) => ({
    name,
    displayName,
    category: 'utilities/primitive',
    pythonModule: 'comfy_extras.nodes_primitive',
    style: 'v3',
    required: { value: [type, options] },
    outputs: [{ type }],
    run: (inputs) => ({ outputs: [inputs['value'] ?? null] }),
  }),
);
