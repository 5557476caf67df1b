import type { InputSpec, NodeDef } from '../../nodes/node.ts';
import type { Json } from '../../protocol/json.ts';
import { pythonRepr, pythonType } from '../../protocol/python-text.ts';
import type { NodeErrorEntry } from '../../protocol/v1.ts';
import type { Graph } from '../../protocol/v2.ts';
import { errorEntry } from '../../protocol/node-errors.ts';
import { nodeOf } from '../../translate/graph.ts';
import { shownValue } from '../../translate/shown-value.ts';
import type { DeclaredSpec } from '../../translate/value-errors.ts';

/** Checks a link against the node and the slot that it comes from. */
export function validateLink(
  input: string,
  spec: InputSpec,
  value: readonly Json[],
  { graph, nodes }: { graph: Graph; nodes: ReadonlyMap<string, NodeDef> },
): InputValidation {
  const info = { input_name: input, input_config: inputConfig(spec) };
  if (value.length !== 2) {
    const more = { ...info, received_value: shownValue(value as Json) };
    return { error: errorEntry('bad_linked_input', input, more) };
  }
  const [from = null, slot = null] = value;
  const source = typeof from === 'string' ? nodeOf(graph, from) : undefined;
  const def = source && nodes.get(source.class_type);
  if (!def) return thrown('KeyError', pythonRepr(shownValue(from)));
  const index = Number.isInteger(slot) ? (slot as number) : undefined;
  const sequence = def.style === 'v3' ? 'list' : 'tuple';
  const found = pythonType(slot);
  if (index === undefined)
    return thrown('TypeError', `${sequence} indices must be integers or slices, not ${found}`);
  // Python counts negative slots from the end, and the original runs such links.
  const received = def.outputs.at(index)?.type;
  if (received === undefined) return thrown('IndexError', `${sequence} index out of range`);
  if (isCompatible(received, spec[0])) return { link: [from as string, index] };
  const wanted = typeof spec[0] === 'string' ? spec[0] : pythonRepr(spec[0] as Json);
  const details = `${input}, received_type(${received}) mismatch input_type(${wanted})`;
  const more = { ...info, received_type: received, linked_node: [from, slot] };
  return { error: errorEntry('return_type_mismatch', details, more) };
}

/** The types that fit every other: any type, and one that front ends match with other sockets. */
const OPEN_TYPES: readonly string[] = ['*', 'COMFY_MATCHTYPE_V3'];

/** True when a type fits. A list with commas fits when one of its types does. */
function isCompatible(received: string, wanted: string | readonly string[]): boolean {
  if (typeof wanted !== 'string') return false;
  if (received === wanted || [received, wanted].some((type) => OPEN_TYPES.includes(type)))
    return true;
  const types = wanted.split(',').map((type) => type.trim());
  return received.split(',').some((type) => types.includes(type.trim()));
}

/** The result of validating one input. */
export type InputValidation =
  | { readonly error: NodeErrorEntry }
  | { readonly link: readonly [string, number] }
  | { readonly value: Json }
  | { readonly thrown: Thrown };

/** The exception that ends v1's validation of a node. */
export type Thrown = { readonly type: string; readonly message: string };

function thrown(type: string, message: string): InputValidation {
  return { thrown: { type, message } };
}

/** Returns `[type, options]`, always with options: v1 shows `{}` where a node declared none. */
export function inputConfig([type, options = {}]: InputSpec): DeclaredSpec {
  return [type as Json, options];
}
