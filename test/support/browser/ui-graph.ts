import type { Graph } from '../../../src/protocol/v2.ts';

/** A workflow as front ends save it: nodes with places, links and the values of their widgets. */
export type UiGraph = {
  readonly nodes: readonly UiNode[];
  readonly links: readonly (readonly [
    id: number,
    from: number,
    fromSlot: number,
    to: number,
    toSlot: number,
    type: string,
  ])[];
  readonly groups: readonly { readonly title: string; readonly bounding: readonly number[] }[];
};

type UiNode = {
  readonly id: number;
  readonly type: string;
  readonly pos: readonly [number, number];
  readonly size: readonly [number, number];
  readonly inputs: readonly { readonly name: string; readonly link: number | null }[];
  readonly outputs: readonly { readonly links: readonly number[] | null }[];
  readonly widgets_values?: readonly unknown[];
};

type Spec = readonly [unknown, Record<string, unknown>?];
type Info = { readonly input: Record<string, Record<string, Spec>> };

const WIDGETS = new Set(['INT', 'FLOAT', 'STRING', 'BOOLEAN', 'COMBO']);

/** The graph that a front end would post. */
export function promptOf(graph: UiGraph, objectInfo: Record<string, Info>): Graph {
  const real = graph.nodes.filter(({ type }) => type !== 'Note');
  return Object.fromEntries(
    real.map((node) => [
      String(node.id),
      { class_type: node.type, inputs: inputsOf(node, graph, objectInfo[node.type]!) },
    ]),
  ) as Graph;
}

function inputsOf(node: UiNode, graph: UiGraph, info: Info): Record<string, unknown> {
  const specs = Object.entries({ ...info.input['required'], ...info.input['optional'] });
  const values = [...(node.widgets_values ?? [])];
  const inputs: Record<string, unknown> = {};
  for (const [name, [type, options = {}]] of specs) {
    if (Array.isArray(type) || WIDGETS.has(type as string)) {
      inputs[name] = values.shift();
      // Widgets that a front end adds beside these: what comes after the run, and an upload button.
      if (options['control_after_generate'] || options['image_upload']) values.shift();
    }
    const link = node.inputs.find((input) => input.name === name)?.link;
    const from = graph.links.find(([id]) => id === link);
    if (from) inputs[name] = [String(from[1]), from[2]];
  }
  if (values.length > 0) throw new Error(`${node.type} ${node.id} has too many values`);
  return inputs;
}
