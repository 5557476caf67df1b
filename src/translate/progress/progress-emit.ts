import type { NodeOutput, V1Message, NodeState } from '../../protocol/v1.ts';
import { isSameJson } from '../../protocol/json.ts';
import type { DocumentedException } from '../exception-types.ts';
import { classOf, displayNode } from '../graph.ts';
import { frameOutput, shortIds, newestThatFit } from './frame-limits.ts';
import type { Output } from '../../protocol/v2.ts';
import { type Step, isOlder, maxesWith } from './older-steps.ts';
import type {
  MessageOf,
  ProgressEffect,
  NodeRun,
  PictureEffect,
  ProgressState,
} from './progress-state.ts';

/** One input that is being reduced: the next state, and the effects. */
export type ProgressUpdate = {
  readonly state: { -readonly [K in keyof ProgressState]: ProgressState[K] };
  readonly effects: ProgressEffect[];
  readonly atMs: number;
};

const FIRST_STEP = {
  value: 0,
  max: 1,
  state: 'running',
  hasReported: false,
  earlierMaxes: [],
} as const;

/** Emits `execution_start`, once. */
export function startPrompt(update: ProgressUpdate): void {
  const { state, atMs } = update;
  if (state.phase !== 'new') return;
  state.phase = 'started';
  state.startedAtMs = atMs;
  emitForHistory(update, {
    type: 'execution_start',
    data: { prompt_id: state.promptId, timestamp: atMs },
  });
}

/**
 * Emits `execution_cached` once, always second, even when it names no node. It waits until the
 * upstream has named the cached nodes, or has shown that it will not.
 */
export function emitCached(update: ProgressUpdate): void {
  startPrompt(update);
  const { state, atMs } = update;
  if (state.cachedSent) return;
  state.cachedSent = true;
  const nodes = shortIds(state.cachedNodes ?? []);
  const data = { nodes, prompt_id: state.promptId, timestamp: atMs };
  emitForHistory(update, { type: 'execution_cached', data });
}

/** Starts a node as in v1: first its `progress_state`, then `executing`. */
export function startNode(update: ProgressUpdate, nodeId: string): void {
  const { state } = update;
  if (displayNode(state.graph, nodeId) === undefined || isAnnounced(state, nodeId)) return;
  emitCached(update);
  if (!state.runs.has(nodeId))
    state.runs.set(nodeId, { startedAtMs: update.atMs, endedAtMs: null, ...FIRST_STEP });
  emitState(update);
  emitExecuting(update, nodeId);
}

/**
 * True for a node that was started, unless it waited for nodes behind its lazy inputs: when they
 * have run, v1 names it again.
 */
function isAnnounced({ runs, current }: ProgressState, nodeId: string): boolean {
  const run = runs.get(nodeId);
  if (run?.state !== 'running') return run !== undefined;
  return current === nodeId || runs.get(current ?? '')?.state === 'running';
}

/** Makes this node the running node of v1 clients. */
function emitExecuting(update: ProgressUpdate, nodeId: string): void {
  const { state } = update;
  emitPendingPicture(update);
  state.current = nodeId;
  const data = {
    node: nodeId,
    display_node: displayIdOf(update, nodeId),
    prompt_id: state.promptId,
  };
  emit(update, { type: 'executing', data });
}

/** Emits `progress_state` and `progress` of a running node, with the picture of this step. */
export function emitStep(update: ProgressUpdate, nodeId: string, reported: Step): void {
  const { state } = update;
  const run = state.runs.get(nodeId);
  if (run?.state !== 'running' || isOlder(state, run, reported)) return;
  const step = { value: reported.value, max: reported.max };
  const picture =
    state.pendingPicture?.picture.nodeId === nodeId ? state.pendingPicture.picture : undefined;
  const isRepeated = run.hasReported && run.value === step.value && run.max === step.max;
  if (isRepeated && !picture) return;
  state.runs.set(nodeId, {
    ...run,
    ...step,
    hasReported: true,
    earlierMaxes: run.max === step.max ? run.earlierMaxes : maxesWith(run),
  });
  if (picture) state.pendingPicture = null;
  const data = { ...step, prompt_id: state.promptId, node: nodeId };
  state.hasStateChanged = true;
  update.effects.push({
    kind: 'step',
    ...(isStateDue(update) && { state: takeState(update) }),
    progress: { type: 'progress', data },
    ...(picture && { picture }),
  });
}

/** Marks the node as finished: v1 fills its bar, whatever its steps were. */
export function markFinished(update: ProgressUpdate, nodeId: string): void {
  const { state, atMs } = update;
  const known = state.runs.get(nodeId);
  if (known?.state === 'finished') return;
  if (known) state.executed.push(nodeId);
  const run = known ?? { ...FIRST_STEP, startedAtMs: null };
  state.runs.set(nodeId, { ...run, value: run.max, state: 'finished', endedAtMs: atMs });
  emitState(update);
}

/**
 * Emits `progress_state`, which names every started node. To send it at every change would cost the
 * square of the number of nodes. For a large graph it is sent at intervals, and before the end of
 * the prompt.
 */
function emitState(update: ProgressUpdate): void {
  update.state.hasStateChanged = true;
  if (isStateDue(update)) emitPendingState(update);
}

/** Emits a delayed `progress_state`. */
export function emitPendingState(update: ProgressUpdate): void {
  const { state, effects } = update;
  if (!state.hasStateChanged) return;
  effects.push({ kind: 'json', message: takeState(update) });
}

function takeState({ state, atMs }: ProgressUpdate): MessageOf<'progress_state'> {
  state.hasStateChanged = false;
  state.stateSentAtMs = atMs;
  return progressStateMessage(state);
}

/**
 * Emits `executed` with all outputs of the node so far; `null` for a cached node without outputs.
 */
export function emitExecuted(
  update: ProgressUpdate,
  nodeId: string,
  output: NodeOutput | null,
): void {
  const { state } = update;
  emitCached(update);
  state.unsentFiles.delete(nodeId);
  state.unnamedUi.delete(nodeId);
  state.sentOutputs.set(nodeId, output);
  const data = {
    node: nodeId,
    display_node: displayIdOf(update, nodeId),
    output: output && frameOutput(output),
    prompt_id: state.promptId,
  };
  emit(update, { type: 'executed', data });
}

/**
 * Emits the picture now, or keeps it for its step. Type 1 frames have no node id, so the node of a
 * result becomes the running one first.
 */
export function emitPicture(
  update: ProgressUpdate,
  picture: PictureEffect,
  when: 'now' | 'with-step',
): void {
  emitPendingPicture(update);
  if (picture.kind === 'result' && update.state.current !== picture.nodeId)
    emitExecuting(update, picture.nodeId);
  if (when === 'now') update.effects.push({ kind: 'picture', picture });
  else update.state.pendingPicture = { picture, sinceMs: update.atMs };
}

/** Returns the picture of an output that only sockets get. */
export function resultPicture(update: ProgressUpdate, output: Output): PictureEffect {
  return {
    nodeId: output.node_id,
    displayNodeId: displayIdOf(update, output.node_id),
    kind: 'result',
    assetId: output.id,
    contentType: output.content_type,
  };
}

/** Emits a picture whose step did not come. */
export function emitPendingPicture(update: ProgressUpdate): void {
  const { state } = update;
  if (state.pendingPicture)
    update.effects.push({ kind: 'picture', picture: state.pendingPicture.picture });
  state.pendingPicture = null;
}

function emit(update: ProgressUpdate, message: V1Message): void {
  update.effects.push({ kind: 'json', message });
}

/** Emits the message and keeps it, since history shows the payload that the sockets got. */
export function emitForHistory(
  update: ProgressUpdate,
  message: V1Message,
  documented?: DocumentedException,
): void {
  update.effects.push({ kind: 'json', message, ...(documented && { documented }) });
  update.state.messages = [...update.state.messages, [message.type, message.data]];
}

/** Emits the output of a node, unless the same output was emitted before. */
export function emitIfChanged(update: ProgressUpdate, nodeId: string, output: NodeOutput): void {
  const sent = update.state.sentOutputs.get(nodeId);
  if (sent === undefined || !isSameJson(sent, output)) emitExecuted(update, nodeId, output);
}

/** Returns the id of the node in the graph that the client sent. */
export function displayIdOf(update: ProgressUpdate, nodeId: string): string {
  return displayNode(update.state.graph, nodeId) ?? nodeId;
}

/** From this many started nodes on, `progress_state` is sent at intervals, not at every change. */
const LARGE_GRAPH_NODES = 100;
/**
 * At most twenty messages a second: with some 190 bytes a node, a prompt stays below 2 MB a second.
 */
const STATE_INTERVAL_MS = { min: 50, perNode: 0.1, max: 250 } as const;

/** Milliseconds between two `progress_state` messages; 0: no limit. */
export function stateIntervalMs(begunNodes: number): number {
  if (begunNodes <= LARGE_GRAPH_NODES) return 0;
  return Math.min(
    STATE_INTERVAL_MS.max,
    Math.max(STATE_INTERVAL_MS.min, begunNodes * STATE_INTERVAL_MS.perNode),
  );
}

/** True when the next `progress_state` may be sent. */
function isStateDue(update: ProgressUpdate): boolean {
  const { runs, stateSentAtMs } = update.state;
  return hasWaited(update, stateSentAtMs, stateIntervalMs(runs.size));
}

/** True when a wait is over. A clock that was set back must not prolong it. */
export function hasWaited({ atMs }: ProgressUpdate, sinceMs: number, maxMs: number): boolean {
  return atMs < sinceMs || atMs - sinceMs >= maxMs;
}

/** Returns `progress_state`, which lists all started nodes; of a huge graph, only the newest. */
function progressStateMessage(state: ProgressState): MessageOf<'progress_state'> {
  const { promptId, runs } = state;
  const shown = newestThatFit([...runs], ([id]) => 4 * id.length + promptId.length + 160);
  const nodes = Object.fromEntries(shown.map(([id, run]) => [id, nodeState(id, run, state)]));
  return { type: 'progress_state', data: { prompt_id: promptId, nodes } };
}

function nodeState(
  nodeId: string,
  { value, max, state }: NodeRun,
  { promptId, graph }: ProgressState,
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
    class_type: classOf(graph, nodeId),
  };
}
