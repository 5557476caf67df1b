import type { Json } from '../protocol/json.ts';
import { pythonFloat } from '../protocol/python-json.ts';
import {
  isTruthyInPython,
  pythonRepr,
  pythonType,
  readPythonFloat,
} from '../protocol/python-text.ts';
import { type InputSpec, type Inputs, type NodeDef, fail, type Value } from './node.ts';
import { isPixels } from './tensor.ts';
import { autogrow, typedNode } from './typed-node.ts';

const LOGIC = {
  category: 'utilities/logic',
  pythonModule: 'comfy_extras.nodes_logic',
  style: 'v3',
  outputs: [{ type: 'BOOLEAN' }],
} as const;

const SEVERAL = autogrow({ value: ['*', {}] }, { prefix: 'value', min: 1, max: 10 });

const BRANCH = [
  'COMFY_MATCHTYPE_V3',
  { lazy: true, template: { template_id: 'switch', allowed_types: '*' } },
] as const satisfies InputSpec;

/** The nodes that choose, and that compare by Python's idea of truth. */
export const LOGIC_NODES: readonly NodeDef[] = [
  {
    ...typedNode({
      ...LOGIC,
      name: 'ComfySwitchNode',
      displayName: 'If/Else Switch',
      experimental: true,
      required: { switch: ['BOOLEAN', {}], on_false: BRANCH, on_true: BRANCH },
      outputs: [{ type: 'COMFY_MATCHTYPE_V3', name: 'output', matchType: 'switch' }],
      run: (inputs, _context, given) => ({ outputs: [inputs[branchOf(given)]] }),
    }),
    neededInputs: (inputs) => [branchOf(inputs)],
  },
  typedNode({
    ...LOGIC,
    name: 'ComfyNotNode',
    displayName: 'Not',
    description: 'True when the value is false, zero, empty or nothing.',
    required: { value: ['*', {}] },
    run: ({ value }) => ({ outputs: [!isTrue(value)] }),
  }),
  typedNode({
    ...LOGIC,
    name: 'ComfyAndNode',
    displayName: 'And',
    description: 'True when no value is false, zero, empty or nothing.',
    required: { values: SEVERAL },
    run: ({ values }) => ({ outputs: [Object.values(values).every(isTrue)] }),
  }),
  typedNode({
    ...LOGIC,
    name: 'ComfyOrNode',
    displayName: 'Or',
    description: 'True when a value is not false, zero, empty or nothing.',
    required: { values: SEVERAL },
    run: ({ values }) => ({ outputs: [Object.values(values).some(isTrue)] }),
  }),
  typedNode({
    name: 'ComfyNumberConvert',
    displayName: 'Convert Number',
    category: 'utilities',
    pythonModule: 'comfy_extras.nodes_number_convert',
    style: 'v3',
    required: { value: ['INT,FLOAT,STRING,BOOLEAN', { display_name: 'value' }] },
    outputs: [{ type: 'FLOAT' }, { type: 'INT' }],
    run: ({ value }) => ({ outputs: toNumbers(value) }),
  }),
];

function branchOf(inputs: Inputs): 'on_true' | 'on_false' {
  return isTrue(inputs['switch'] ?? null) ? 'on_true' : 'on_false';
}

function isTrue(value: Value): boolean {
  if (typeof value === 'bigint') return true;
  if (isPixels(value))
    return fail('RuntimeError', 'Boolean value of Tensor with more than one value is ambiguous');
  return isTruthyInPython(value as Json);
}

type Numbers = readonly [float: number, int: number | bigint];

/** Returns a value as a FLOAT and as an INT, which keeps all its digits. */
function toNumbers(value: Value): Numbers {
  if (typeof value === 'string') return numbersIn(value);
  if (typeof value === 'bigint') return [Number(value), value];
  if (typeof value === 'number' || typeof value === 'boolean') return cutOff(Number(value));
  return fail('TypeError', `Unsupported input type: ${pythonType(value as Json)}`);
}

function numbersIn(value: string): Numbers {
  const text = value.trim().replaceAll(/(?<=\d)_(?=\d)/g, '');
  if (text === '') return fail('ValueError', 'Cannot convert empty string to number.');
  if (/^[+-]?\d+$/.test(text))
    return [cutOff(Number(text))[0], exactInt(BigInt(text.replace(/^\+/, '')))];
  const float = readPythonFloat(text);
  if (float !== undefined) return cutOff(float);
  return fail('ValueError', `Cannot convert string to number: ${pythonRepr(value)}`);
}

function cutOff(float: number): Numbers {
  if (Number.isFinite(float)) return [float, exactInt(BigInt(Math.trunc(float)))];
  return fail('ValueError', `Cannot convert non-finite value to number: ${pythonFloat(float)}`);
}

/** An INT as it is on a link. */
export function exactInt(int: bigint): number | bigint {
  const number = Number(int);
  return Number.isSafeInteger(number) ? number : int;
}
