import { type Json, entriesInOrder, isJsonObject, objectInOrder } from '../protocol/json.ts';
import type { Steps } from '../protocol/steps.ts';
import type { Graph, GraphNode } from '../protocol/v2.ts';

/**
 * Returns the node of that id. Ids are texts of clients and may equal the names of members that
 * every object has.
 */
export function nodeOf(graph: Graph, id: string): GraphNode | undefined {
  return Object.hasOwn(graph, id) ? graph[id] : undefined;
}

/** The node and output slot that a linked input takes its value from. */
export type Link = { readonly from: string; readonly slot: number };

/** Reads v1's notation of a link, `[nodeId, slot]`. */
export function linkOf(value: Json | undefined): Link | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [from, slot] = value as readonly Json[];
  return typeof from === 'string' && typeof slot === 'number' ? { from, slot } : undefined;
}

/** The member in which a client wraps a list, which would be a link otherwise, or another literal. */
export const WRAPPED = '__value__';

/** Returns the value inside a wrapped literal, and any other as it is. */
export function unwrap<T extends Json | undefined>(value: T): Json | T {
  return isJsonObject(value) && Object.hasOwn(value, WRAPPED) ? (value[WRAPPED] ?? null) : value;
}

/**
 * Returns the ids of the targets and of all nodes that they depend on, dependencies first, in the
 * order of a walk from each target.
 */
export function dependenciesFirst(
  graph: Graph,
  targets: readonly string[],
  linked = (id: string): Iterable<string> => linkedNodes(graph, id),
): readonly string[] {
  const done = new Set<string>();
  const seen = new Set<string>();
  const stack = targets.filter((id) => nodeOf(graph, id)).toReversed();
  for (let id = stack.at(-1); id !== undefined; id = stack.at(-1)) {
    if (seen.has(id)) done.add(stack.pop() ?? id);
    else {
      seen.add(id);
      for (const from of [...linked(id)].toReversed()) if (!seen.has(from)) stack.push(from);
    }
  }
  return [...done];
}

/** Returns the nodes that a node takes values from. */
function linkedNodes(graph: Graph, id: string): ReadonlySet<string> {
  const found = new Set<string>();
  for (const value of Object.values(nodeOf(graph, id)?.inputs ?? {})) {
    const from = linkOf(value)?.from;
    if (from !== undefined && nodeOf(graph, from)) found.add(from);
  }
  return found;
}

/** Returns the graph with some nodes replaced; the same object when there are none. */
export function withNodes(graph: Graph, changed: ReadonlyMap<string, GraphNode>): Graph {
  if (changed.size === 0) return graph;
  return objectInOrder(
    entriesInOrder(graph).map(([id, node]) => [id, changed.get(id) ?? node] as const),
  );
}

/** Returns the part of a graph that its targets need, in the graph's own order. */
export function pruneTo(graph: Graph, targets: readonly string[]): Graph {
  const needed = new Set(dependenciesFirst(graph, targets));
  return objectInOrder(entriesInOrder(graph).filter(([id]) => needed.has(id)));
}

/**
 * The maximum number of steps to find which outputs fail because of which node. Graphs that are
 * made to be slow get less detail.
 */
const MAX_ATTRIBUTION_STEPS = 200_000;

type Attribution = {
  /** For each target that fails, a failing node that it depends on. */
  readonly causes: ReadonlyMap<string, string>;
  /** Returns all nodes that a target depends on. */
  readonly neededBy: (target: string) => readonly string[];
  readonly isFailing: (id: string) => boolean;
};

/**
 * Groups targets by the failing node that they depend on. Each target with a cause is named at
 * least once, however large the graph.
 */
export function* targetsByFailingNode(
  targets: Iterable<string>,
  { causes, neededBy, isFailing }: Attribution,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const byNode = new Map<string, string[]>();
  let steps = 0;
  for (const target of targets) {
    const cause = causes.get(target);
    if (cause === undefined) continue;
    if (steps > MAX_ATTRIBUTION_STEPS) {
      addTo(byNode, cause, target);
      continue;
    }
    const needed = neededBy(target);
    for (const id of needed) if (isFailing(id)) addTo(byNode, id, target);
    steps += needed.length;
    yield needed.length;
  }
  return byNode;
}

/** Groups targets as `targetsByFailingNode` does, by the links of a graph. */
export function dependentOutputs(
  graph: Graph,
  targets: readonly string[],
  failing: ReadonlySet<string>,
): Steps<ReadonlyMap<string, readonly string[]>> {
  const causes = new Map<string, string>();
  // A node may have very many inputs, and each target may depend on it.
  const links = new Map<string, readonly string[]>();
  for (const id of dependenciesFirst(graph, targets)) {
    const sources = [...linkedNodes(graph, id)];
    links.set(id, sources);
    const from = sources.find((source) => causes.has(source)) ?? '';
    const cause = failing.has(id) ? id : causes.get(from);
    if (cause !== undefined) causes.set(id, cause);
  }
  return targetsByFailingNode(targets, {
    causes,
    neededBy: (target) => dependenciesFirst(graph, [target], (id) => links.get(id) ?? []),
    isFailing: (id) => failing.has(id),
  });
}

/**
 * Returns the submitted node of an id. Nodes that exist only while the graph runs have ids
 * `<parent>.<call>.<graph>.<n>`, and v1 clients know only the parent.
 */
export function displayNode(graph: Graph, id: string): string | undefined {
  let candidate = id;
  while (!nodeOf(graph, candidate)) {
    const cut = Math.max(candidate.lastIndexOf('.'), candidate.lastIndexOf(':'));
    if (cut <= 0) return undefined;
    candidate = candidate.slice(0, cut);
  }
  return candidate;
}

/** Returns the only node from which no other node takes a value, if there is exactly one. */
export function soleSink(graph: Graph): string | undefined {
  const used = new Set(Object.keys(graph).flatMap((id) => [...linkedNodes(graph, id)]));
  const sinks = Object.keys(graph).filter((id) => !used.has(id));
  return sinks.length === 1 ? sinks[0] : undefined;
}

/** Returns v1's name of a node's class; empty for a node that was not submitted. */
export function classOf(graph: Graph, id: string): string {
  const display = displayNode(graph, id);
  return (display !== undefined && nodeOf(graph, display)?.class_type) || '';
}

/** Adds a value to the list of a key. */
export function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}
