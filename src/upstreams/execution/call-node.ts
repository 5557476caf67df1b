import {
  type Inputs,
  NodeFailure,
  type NodeContext,
  type NodeDef,
  type Value,
} from '../../nodes/node.ts';
import type { Json } from '../../protocol/json.ts';
import type { MemoryMeter } from './memory-meter.ts';

/** The result of all calls of a node: one list per output slot, and what it shows. */
export type CallResult = {
  readonly slots: readonly (readonly Value[])[];
  readonly ui?: { readonly [key: string]: readonly Json[] };
};

/**
 * Runs a node as v1 does: once per item of the longest input list, shorter lists repeating their
 * last item; a node that takes lists runs once. Results of list outputs are joined.
 */
export async function callNode(
  def: NodeDef,
  inputs: ReadonlyMap<string, readonly Value[]>,
  context: NodeContext & { readonly meter: MemoryMeter },
): Promise<CallResult> {
  const slots: Value[][] = def.outputs.map(() => []);
  const ui = new Map<string, Json[]>();
  for (const arguments_ of argumentSets(def, inputs)) {
    context.check();
    const result = await def.run(arguments_, context);
    collectOutputs(def, result.outputs, slots);
    for (const [key, items] of Object.entries(result.ui ?? {})) {
      ui.set(key, [...(ui.get(key) ?? []), ...items]);
    }
    context.meter.settle(slots.flat());
  }
  return { slots, ...(ui.size > 0 && { ui: Object.fromEntries(ui) }) };
}

function argumentSets(
  def: NodeDef,
  inputs: ReadonlyMap<string, readonly Value[]>,
): readonly Inputs[] {
  if (def.inputIsList) return [Object.fromEntries(inputs) as unknown as Inputs];
  const calls = Math.max(1, ...[...inputs.values()].map((list) => list.length));
  return Array.from({ length: calls }, (_, call) => {
    const entries = [...inputs].map(([name, list]) => [name, itemFor(name, list, call)] as const);
    return Object.fromEntries(entries);
  });
}

function itemFor(name: string, list: readonly Value[], call: number): Value {
  const item = list[Math.min(call, list.length - 1)];
  if (item === undefined)
    throw new NodeFailure('IndexError', `the list linked to ${name} is empty`);
  return item;
}

function collectOutputs(
  def: NodeDef,
  outputs: readonly (Value | readonly Value[])[],
  slots: Value[][],
): void {
  for (const [index, slot] of slots.entries()) {
    const value = outputs[index];
    if (value === undefined) throw new Error(`${def.name} gave no value for its output ${index}`);
    if (def.outputs[index]?.isList) slot.push(...(value as readonly Value[]));
    else slot.push(value as Value);
  }
}
