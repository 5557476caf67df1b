import type { NodeOutput, V1Message } from '../wire/v1.ts';
import { displayNode } from './graph.ts';
import { frameOutput, shortIds } from './limits.ts';
import { nodesAreDue, nodesMessage } from './progress-nodes.ts';
import type { Effect, NodeRun, PictureEffect, ProgressState } from './progress-state.ts';

/** One input being worked off: the state as it becomes, and what is to be sent. */
export type Turn = {
  readonly state: { -readonly [K in keyof ProgressState]: ProgressState[K] };
  readonly effects: Effect[];
  readonly atMs: number;
};

const FIRST: NodeRun = { value: 0, max: 1, state: 'running', hasReported: false };

/** `execution_start`, once. */
export function start(turn: Turn): void {
  const { state, atMs } = turn;
  if (state.phase !== 'new') return;
  state.phase = 'started';
  state.startedAtMs = atMs;
  sayForHistory(turn, {
    type: 'execution_start',
    data: { prompt_id: state.promptId, timestamp: atMs },
  });
}

/**
 * `execution_cached`, once and always second, sent even when it names no node. It waits until the
 * upstream has told the cached nodes or has shown by anything else that it will not.
 */
export function sayCached(turn: Turn): void {
  start(turn);
  const { state, atMs } = turn;
  if (state.cachedSent) return;
  state.cachedSent = true;
  const nodes = shortIds(state.cachedNodes ?? []);
  const data = { nodes, prompt_id: state.promptId, timestamp: atMs };
  sayForHistory(turn, { type: 'execution_cached', data });
}

/** v1 announces a node once: first its `progress_state`, then `executing`. */
export function enter(turn: Turn, nodeId: string): void {
  const { state } = turn;
  const display = displayNode(state.graph, nodeId);
  if (display === undefined || state.runs.has(nodeId)) return;
  sayCached(turn);
  state.runs.set(nodeId, FIRST);
  sayNodes(turn);
  sayExecuting(turn, nodeId);
}

/** Makes v1 clients take this node for the one at work. */
function sayExecuting(turn: Turn, nodeId: string): void {
  const { state } = turn;
  releasePicture(turn);
  state.current = nodeId;
  const data = { node: nodeId, display_node: shownId(turn, nodeId), prompt_id: state.promptId };
  say(turn, { type: 'executing', data });
}

/** `progress_state` and `progress` of a running node, with the picture that waited for them. */
export function report(
  turn: Turn,
  nodeId: string,
  step: { readonly value: number; readonly max: number },
): void {
  const { state } = turn;
  const run = state.runs.get(nodeId);
  if (run?.state !== 'running') return;
  const picture = state.held?.picture.nodeId === nodeId ? state.held.picture : undefined;
  const isRepeated = run.hasReported && run.value === step.value && run.max === step.max;
  const isOlder = !state.isExact && run.max === step.max && step.value < run.value;
  if (isOlder || (isRepeated && !picture)) return;
  state.runs.set(nodeId, { ...step, state: 'running', hasReported: true });
  if (picture) state.held = null;
  const data = { ...step, prompt_id: state.promptId, node: nodeId };
  state.nodesChanged = true;
  turn.effects.push({
    kind: 'step',
    ...(nodesAreDue(state, turn.atMs) && { state: takeNodes(turn) }),
    progress: { type: 'progress', data },
    ...(picture && { picture }),
  });
}

/** The node is done: v1 fills its bar, whatever it had told of its steps. */
export function finish(turn: Turn, nodeId: string): void {
  const { state } = turn;
  const run = state.runs.get(nodeId);
  if (run?.state === 'finished') return;
  if (run) state.executed.push(nodeId);
  const max = run?.max ?? 1;
  state.runs.set(nodeId, {
    value: max,
    max,
    state: 'finished',
    hasReported: run?.hasReported ?? false,
  });
  sayNodes(turn);
}

/**
 * `progress_state` names every node that has begun: said at every change, a graph would cost the
 * square of its nodes. Of a large one the latest is said at a pace, and before the prompt's end.
 */
function sayNodes(turn: Turn): void {
  turn.state.nodesChanged = true;
  sayNodesIfDue(turn);
}

/** Says the `progress_state` that was held back, once its time has come. */
export function sayNodesIfDue(turn: Turn): void {
  if (nodesAreDue(turn.state, turn.atMs)) sayNodesLeft(turn);
}

/** The same whatever the time: the end comes next. */
export function sayNodesLeft(turn: Turn): void {
  if (turn.state.nodesChanged) say(turn, takeNodes(turn));
}

function takeNodes({ state, atMs }: Turn): ReturnType<typeof nodesMessage> {
  state.nodesChanged = false;
  state.nodesSaidAtMs = atMs;
  return nodesMessage(state);
}

/** `executed` with everything the node shows so far; `null` for a reused node that shows nothing. */
export function announce(turn: Turn, nodeId: string, output: NodeOutput | null): void {
  const { state } = turn;
  sayCached(turn);
  state.dirty.delete(nodeId);
  state.waiting.delete(nodeId);
  state.announced.set(nodeId, output);
  const data = {
    node: nodeId,
    display_node: shownId(turn, nodeId),
    output: output && frameOutput(output),
    prompt_id: state.promptId,
  };
  say(turn, { type: 'executed', data });
}

/**
 * Sends the picture now, or keeps it for the step it belongs to. Type 1 frames carry no id, so a
 * result first makes its node the one at work.
 */
export function show(turn: Turn, picture: PictureEffect, when: 'now' | 'with-step'): void {
  releasePicture(turn);
  if (picture.kind === 'result' && turn.state.current !== picture.nodeId)
    sayExecuting(turn, picture.nodeId);
  if (when === 'now') turn.effects.push({ kind: 'picture', picture });
  else turn.state.held = { picture, sinceMs: turn.atMs };
}

/** A picture whose step does not come is sent without it. */
export function releasePicture(turn: Turn): void {
  const { state } = turn;
  if (state.held) turn.effects.push({ kind: 'picture', picture: state.held.picture });
  state.held = null;
}

function say(turn: Turn, message: V1Message): void {
  turn.effects.push({ kind: 'json', message });
}

/** Sends it and keeps it: history shows the very payload the sockets got. */
export function sayForHistory(
  turn: Turn,
  message: V1Message,
  words: Pick<Effect & { kind: 'json' }, 'documented'> = {},
): void {
  turn.effects.push({ kind: 'json', message, ...words });
  turn.state.messages = [...turn.state.messages, [message.type, message.data]];
}

/** The id v1 clients find in the graph they sent. */
export function shownId(turn: Turn, nodeId: string): string {
  return displayNode(turn.state.graph, nodeId) ?? nodeId;
}
