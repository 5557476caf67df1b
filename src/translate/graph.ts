import type { Json } from '../protocol/json.ts';
import type { Graph, GraphNode } from '../protocol/v2.ts';

/** The node of that id; ids are client text and may be spelled like members of every object. */
export function nodeOf(graph: Graph, id: string): GraphNode | undefined {
  return Object.hasOwn(graph, id) ? graph[id] : undefined;
}

/** The node a link `[nodeId, slot]` comes from. */
export function linkSource(value: Json): string | undefined {
  if (!Array.isArray(value) || value.length !== 2) return undefined;
  const [from, slot] = value as readonly Json[];
  return typeof from === 'string' && typeof slot === 'number' ? from : undefined;
}

/** The targets and every node they depend on. */
export function ancestors(graph: Graph, targets: Iterable<string>): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [...targets];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const node = nodeOf(graph, id);
    if (!node || seen.has(id)) continue;
    seen.add(id);
    for (const from of sources(node)) open.push(from);
  }
  return seen;
}

/** The part of a graph its targets need, in the graph's own order. */
export function pruneTo(graph: Graph, targets: Iterable<string>): Graph {
  const needed = ancestors(graph, targets);
  return Object.fromEntries(Object.entries(graph).filter(([id]) => needed.has(id)));
}

/** Limit of the steps that find the outputs of failing nodes; graphs made to be slow get less detail. */
const MAX_SEARCH_STEPS = 200_000;

/** The given output nodes that fail when that node does; beyond the limit one of them. */
export function dependents(
  graph: Graph,
  nodeId: string,
  outputs: readonly string[],
): readonly string[] {
  const search = searchOf(graph);
  if (search.steps > MAX_SEARCH_STEPS) {
    search.outputByNode ??= firstOutputs(graph, outputs);
    const output = search.outputByNode.get(nodeId);
    return output === undefined ? [] : [output];
  }
  const reached = new Set<string>();
  const open = [nodeId];
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (reached.has(id) || !nodeOf(graph, id)) continue;
    reached.add(id);
    for (const user of search.users.get(id) ?? []) open.push(user);
  }
  search.steps += reached.size + outputs.length;
  return outputs.filter((output) => reached.has(output));
}

type Search = {
  /** The nodes that take values from each. */
  readonly users: ReadonlyMap<string, readonly string[]>;
  steps: number;
  outputByNode?: ReadonlyMap<string, string>;
};

/** A refusal asks about many nodes of one graph. */
const knownSearches = new WeakMap<Graph, Search>();

function searchOf(graph: Graph): Search {
  const known = knownSearches.get(graph);
  if (known) return known;
  const users = new Map<string, string[]>();
  for (const [id, node] of Object.entries(graph)) {
    for (const from of sources(node)) {
      const others = users.get(from);
      if (others) others.push(id);
      else users.set(from, [id]);
    }
  }
  const search = { users, steps: 0 };
  knownSearches.set(graph, search);
  return search;
}

/** For each node the first of the outputs that depend on it. */
function firstOutputs(graph: Graph, outputs: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const output of outputs) {
    const open = [output];
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      const node = nodeOf(graph, id);
      if (!node || found.has(id)) continue;
      found.set(id, output);
      for (const from of sources(node)) open.push(from);
    }
  }
  return found;
}

/**
 * The submitted node of an id: nodes that exist only while the graph runs have ids
 * `<parent>.<call>.<graph>.<n>`, and v1 clients know the parent only.
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

/** The one node that no other node takes a value from, if there is exactly one. */
export function soleSink(graph: Graph): string | undefined {
  const used = new Set(Object.values(graph).flatMap((node) => [...sources(node)]));
  const sinks = Object.keys(graph).filter((id) => !used.has(id));
  return sinks.length === 1 ? sinks[0] : undefined;
}

/** v1's name of a node's class; empty for a node that was not submitted. */
export function classOf(graph: Graph, id: string): string {
  const display = displayNode(graph, id);
  return (display !== undefined && nodeOf(graph, display)?.class_type) || '';
}

function* sources(node: GraphNode): Generator<string> {
  for (const value of Object.values(node.inputs ?? {})) {
    const from = linkSource(value);
    if (from !== undefined) yield from;
  }
}
