import type { LivePrompt } from '../prompts/live-prompt.ts';
import { type Json, type JsonObject, isJsonObject, stringifyJson } from '../protocol/json.ts';
import type { HistoryEntry } from '../protocol/v1.ts';
import type { Graph, GraphNode } from '../protocol/v2.ts';
import { readNodeTimes } from '../prompts/node-times.ts';
import type { JobNode, NodeStateWord } from './api-types.ts';

/** The state and time of the nodes of a prompt. */
type NodeRuns = {
  /** The state of a node that no event names. */
  readonly otherwise: NodeStateWord;
  readonly states: ReadonlyMap<string, NodeStateWord>;
  readonly ranMs: ReadonlyMap<string, number>;
};

export function isGraph(graph: Graph | null): graph is Graph {
  return isJsonObject(graph as Json);
}

/** Returns the nodes of a graph with their states, times, values and links. */
export function jobNodesOf(
  graph: Graph,
  { otherwise, states, ranMs }: NodeRuns,
): readonly JobNode[] {
  return Object.entries(graph).map(([id, node]) => ({
    id,
    class_type: String(node.class_type),
    title: titleOf(node),
    state: states.get(id) ?? otherwise,
    ran_ms: ranMs.get(id) ?? null,
    values: valuesOf(node, graph),
    links: linksOf(node, graph),
  }));
}

/** Returns the nodes of a live prompt, from the events of its job. */
export function liveRuns({ progress }: LivePrompt, nowMs: number): NodeRuns {
  const runs = [...(progress?.runs ?? [])];
  return {
    otherwise: 'waiting',
    states: new Map(runs.map(([id, { state }]) => [id, state === 'finished' ? 'done' : 'running'])),
    ranMs: new Map(
      runs.flatMap(([id, { startedAtMs, endedAtMs }]) =>
        startedAtMs === null ? [] : [[id, Math.max(0, (endedAtMs ?? nowMs) - startedAtMs)]],
      ),
    ),
  };
}

/**
 * Returns the nodes of an ended prompt, from its history entry and the times that are stored with
 * it.
 */
export function endedRuns(nodeTimesJson: string | null, entry: HistoryEntry | null): NodeRuns {
  const times = Object.entries(readNodeTimes(nodeTimesJson));
  return {
    otherwise: entry?.status.completed === true ? 'done' : 'waiting',
    states: entry === null ? new Map() : endedStates(entry),
    ranMs: new Map(times.map(([id, [startMs, endMs]]) => [id, Math.max(0, endMs - startMs)])),
  };
}

function endedStates(entry: HistoryEntry): ReadonlyMap<string, NodeStateWord> {
  const states = new Map<string, NodeStateWord>();
  for (const nodeId of Object.keys(entry.outputs)) states.set(nodeId, 'done');
  for (const [type, data] of entry.status.messages) {
    const facts = data as unknown as JsonObject;
    if (type === 'execution_cached') setAll(facts['nodes'], 'cached');
    if (type === 'execution_error' || type === 'execution_interrupted') {
      setAll(facts['executed'], 'done');
      setAll([facts['node_id'] ?? ''], type === 'execution_error' ? 'failed' : 'stopped');
    }
  }
  return states;

  function setAll(ids: Json | undefined, state: NodeStateWord): void {
    if (!Array.isArray(ids)) return;
    for (const id of ids as readonly Json[]) {
      if (typeof id === 'string' && !(state === 'done' && states.has(id))) states.set(id, state);
    }
  }
}

function titleOf(node: GraphNode): string {
  const meta = node['_meta'];
  const title = isJsonObject(meta) ? meta['title'] : undefined;
  return typeof title === 'string' && title !== '' ? title : String(node.class_type);
}

function linksOf({ inputs }: GraphNode, graph: Graph): JobNode['links'] {
  return Object.entries(inputs ?? {}).flatMap(([input, value]) =>
    isLink(value, graph) ? [{ input, from: value[0], slot: Number(value[1]) }] : [],
  );
}

/** Longer texts of an input are cut. */
const MAX_VALUE_CHARS = 300;

function valuesOf({ inputs }: GraphNode, graph: Graph): JobNode['values'] {
  return Object.entries(inputs ?? {}).flatMap(([input, value]) => {
    if (value === undefined || isLink(value, graph)) return [];
    const text = typeof value === 'string' ? value : stringifyJson(value);
    return [{ input, text: shortened(text) }];
  });
}

function isLink(value: Json | undefined, graph: Graph): value is [string, Json] {
  if (!Array.isArray(value) || value.length !== 2) return false;
  return typeof value[0] === 'string' && Object.hasOwn(graph, value[0]);
}

function shortened(text: string): string {
  return text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}…` : text;
}
