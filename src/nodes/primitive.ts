import { LosslessNumber } from '../protocol/json.ts';
import type { InputSpec, NodeDef } from './node.ts';

/** v1's bounds, which no double holds. */
const LONG_RANGE = {
  min: new LosslessNumber('-9223372036854775807'),
  max: new LosslessNumber('9223372036854775807'),
} as const;

type Primitive = {
  readonly name: string;
  readonly displayName: string;
  readonly type: string;
  readonly value: InputSpec;
};

const PRIMITIVES: readonly Primitive[] = [
  {
    name: 'PrimitiveString',
    displayName: 'String',
    type: 'STRING',
    value: ['STRING', { multiline: false }],
  },
  {
    name: 'PrimitiveStringMultiline',
    displayName: 'String (Multiline)',
    type: 'STRING',
    value: ['STRING', { multiline: true }],
  },
  {
    name: 'PrimitiveInt',
    displayName: 'Int',
    type: 'INT',
    value: ['INT', { ...LONG_RANGE, control_after_generate: true }],
  },
  { name: 'PrimitiveFloat', displayName: 'Float', type: 'FLOAT', value: ['FLOAT', LONG_RANGE] },
  { name: 'PrimitiveBoolean', displayName: 'Boolean', type: 'BOOLEAN', value: ['BOOLEAN', {}] },
];

/** The nodes that hand on one literal. */
export const PRIMITIVE_NODES: readonly NodeDef[] = PRIMITIVES.map(
  ({ name, displayName, type, value }) => ({
    name,
    displayName,
    category: 'utils/primitive',
    pythonModule: 'comfy_extras.nodes_primitive',
    style: 'v3',
    required: { value },
    outputs: [{ type }],
    run: (inputs) => ({ outputs: [inputs['value'] ?? null] }),
  }),
);
