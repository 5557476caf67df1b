import type { NodeState, V1Message } from '../../protocol/v1.ts';
import { displayNode } from '../graph.ts';
import { newestThatFit } from '../frame-limits.ts';
import type { NodeRun, ProgressState } from '../progress-state.ts';

/**
 * From this many started nodes on, `progress_state` is sent at intervals and not at every change.
 */
const LARGE_GRAPH_NODES = 100;
/** At most twenty a second: at some 190 bytes a node, a prompt stays below 2 MB a second. */
const STATE_INTERVAL_MS = { min: 50, perNode: 0.1, max: 250 } as const;

/** Milliseconds between two `progress_state` messages; 0: no limit. */
export function stateIntervalMs(begunNodes: number): number {
  if (begunNodes <= LARGE_GRAPH_NODES) return 0;
  return Math.min(
    STATE_INTERVAL_MS.max,
    Math.max(STATE_INTERVAL_MS.min, begunNodes * STATE_INTERVAL_MS.perNode),
  );
}

/**
 * True when the next `progress_state` may be sent at this time, also when the clock was set back.
 */
export function isStateDue(
  { runs, stateSentAtMs: nodesSaidAtMs }: Pick<ProgressState, 'runs' | 'stateSentAtMs'>,
  atMs: number,
): boolean {
  return atMs < nodesSaidAtMs || atMs - nodesSaidAtMs >= stateIntervalMs(runs.size);
}

/** `progress_state` lists all started nodes; of a huge graph, the newest. */
export function progressStateMessage({
  promptId,
  graph,
  runs,
}: Pick<ProgressState, 'promptId' | 'graph' | 'runs'>): Extract<
  V1Message,
  { type: 'progress_state' }
> {
  const shown = newestThatFit([...runs], ([id]) => 4 * id.length + promptId.length + 160);
  const nodes = Object.fromEntries(
    shown.map(([id, run]) => [id, nodeState(id, run, { promptId, graph })]),
  );
  return { type: 'progress_state', data: { prompt_id: promptId, nodes } };
}

function nodeState(
  nodeId: string,
  { value, max, state }: NodeRun,
  { promptId, graph }: Pick<ProgressState, 'promptId' | 'graph'>,
): NodeState {
  const display = displayNode(graph, nodeId) ?? nodeId;
  return {
    value,
    max,
    state,
    node_id: nodeId,
    prompt_id: promptId,
    display_node_id: display,
    parent_node_id: display === nodeId ? null : display,
    real_node_id: display,
  };
}
