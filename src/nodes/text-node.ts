import type { InputSpec, Inputs, NodeDef, OutputSpec, Value } from './node.ts';

/** The input declaration nearly every text node has. */
export const MULTILINE: InputSpec = ['STRING', { multiline: true }];

/** A text node in short: everything these have in common is filled in. */
export function stringNode(parts: {
  readonly name: string;
  readonly displayName: string;
  readonly description?: string;
  readonly required: { readonly [name: string]: InputSpec };
  readonly optional?: { readonly [name: string]: InputSpec };
  readonly output: OutputSpec;
  readonly evaluate: (inputs: Inputs) => Value;
}): NodeDef {
  const { output, evaluate, ...rest } = parts;
  return {
    description: '',
    ...rest,
    category: 'utils/string',
    pythonModule: 'comfy_extras.nodes_string',
    style: 'v3',
    outputs: [output],
    run: (inputs) => ({ outputs: [evaluate(inputs)] }),
  };
}
