import { createHash } from 'node:crypto';
import { declaredInputs } from '../../translate/declared-inputs.ts';
import { type Link, dependenciesFirst, linkOf } from '../../translate/graph.ts';
import type { InputSpec, NodeDef } from '../../nodes/node.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import type { Graph, GraphNode } from '../../protocol/v2.ts';
import type { ReadableFiles } from '../jobs/worker-protocol.ts';

export type PlannedNode = {
  readonly id: string;
  readonly def: NodeDef;
  readonly links: ReadonlyMap<string, Link>;
  /** The links whose nodes run only if the node asks for them. */
  readonly lazyLinks: ReadonlyMap<string, Link>;
  readonly literals: ReadonlyMap<string, { readonly value: Json; readonly spec: InputSpec }>;
  /** Equal for nodes that compute the same result, whatever their ids. */
  readonly signature: string;
};

/** The nodes that the targets depend on, each after the nodes that it needs. */
export type RunPlan = ReadonlyMap<string, PlannedNode>;

/**
 * Returns the inputs of a node. A node without inputs is valid if its dependent does not declare
 * the input that links it.
 */
export function inputsOf(node: GraphNode | undefined): GraphNode['inputs'] {
  return node?.inputs ?? {};
}

/**
 * Plans a validated graph. `nonce` makes the nodes that always run differ from every earlier run.
 */
export function createRunPlan(options: {
  readonly graph: Graph;
  readonly targets: readonly string[];
  readonly nodes: ReadonlyMap<string, NodeDef>;
  readonly files: ReadableFiles;
  readonly nonce: string;
}): RunPlan {
  const plan = new Map<string, PlannedNode>();
  for (const id of dependenciesFirst(options.graph, options.targets)) {
    plan.set(id, planNode(id, { plan, ...options }));
  }
  return plan;
}

type PlanContext = Parameters<typeof createRunPlan>[0] & {
  readonly plan: ReadonlyMap<string, PlannedNode>;
};

function planNode(id: string, context: PlanContext): PlannedNode {
  const node = context.graph[id];
  const def = node && context.nodes.get(node.class_type);
  if (!node || !def) throw new Error(`node ${id} is not in the library`);
  const inputs = inputsOf(node);
  const links = new Map<string, Link>();
  const lazyLinks = new Map<string, Link>();
  const literals = new Map<string, { value: Json; spec: InputSpec }>();
  for (const { name, spec } of declaredInputs(def, inputs)) {
    const value = Object.hasOwn(inputs, name) ? inputs[name] : undefined;
    if (value === undefined) continue;
    const link = linkOf(value);
    if (link) (spec[1]?.['lazy'] === true ? lazyLinks : links).set(name, link);
    else literals.set(name, { value, spec });
  }
  return {
    id,
    def,
    links,
    lazyLinks,
    literals,
    signature: signatureOf({ id, def, inputs }, context),
  };
}

/**
 * Returns the signature of a node. v1 keys its cache by class, inputs and the keys of the linked
 * nodes, not by ids. It adds the id for an older class that asks for UNIQUE_ID; none here does.
 */
function signatureOf(
  node: Pick<PlannedNode, 'id' | 'def'> & Pick<GraphNode, 'inputs'>,
  context: PlanContext,
): string {
  const parts: Json[] = [node.def.name];
  if (node.def.alwaysRuns) parts.push(context.nonce, node.id);
  for (const name of Object.keys(node.inputs).toSorted()) {
    parts.push([name, inputKey(node.inputs[name] ?? null, context)]);
  }
  return createHash('sha256').update(stringifyJson(parts)).digest('base64');
}

function inputKey(value: Json, { plan, files }: PlanContext): Json {
  const link = linkOf(value);
  if (link) return ['link', plan.get(link.from)?.signature ?? null, link.slot];
  const hash = typeof value === 'string' ? files.get(value) : undefined;
  return hash === undefined ? ['value', value] : ['file', value, hash];
}
