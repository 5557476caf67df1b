import type { InputSpec, Inputs, NodeContext, NodeDef, OutputSpec, Value } from '../node.ts';

/** The input declaration nearly every text node has. */
export const MULTILINE: InputSpec = ['STRING', { multiline: true }];

/** A running regular expression, or a loop inside V8, does not check the stop flag. */
export const TEXT_STOP_GRACE_MS = 500;

/** A text node in short: everything these have in common is filled in. */
export function stringNode(parts: {
  readonly name: string;
  readonly displayName: string;
  readonly description?: string;
  readonly required: { readonly [name: string]: InputSpec };
  readonly optional?: { readonly [name: string]: InputSpec };
  readonly output: OutputSpec;
  readonly evaluate: (inputs: Inputs, context: NodeContext) => Value | Promise<Value>;
}): NodeDef {
  const { output, evaluate, ...rest } = parts;
  return {
    ...rest,
    category: 'utils/string',
    pythonModule: 'comfy_extras.nodes_string',
    style: 'v3',
    outputs: [output],
    stopGraceMs: TEXT_STOP_GRACE_MS,
    run: async (inputs, context) => ({ outputs: [await evaluate(inputs, context)] }),
  };
}
