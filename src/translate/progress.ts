import { sniffPreview } from '../wire/frames.ts';
import type { JobEvent } from '../wire/jobs.ts';
import { IS_TERMINAL, type Job, type Output, type Progress } from '../wire/v2.ts';
import { displayNode } from './graph.ts';
import {
  finishNode,
  leaveCurrent,
  noteOutput,
  tellDirty,
  tellWaiting,
} from './progress-outputs.ts';
import { endCanceled, endLost, settle } from './progress-end.ts';
import { nodesPaceMs } from './progress-nodes.ts';
import type { Effect, Input, PictureEffect, ProgressState } from './progress-state.ts';
import {
  type Turn,
  enter,
  releasePicture,
  report,
  sayCached,
  sayNodesIfDue,
  shownId,
  show,
  start,
} from './progress-turn.ts';
import { showUi } from './outputs.ts';

/** How long a picture waits for its step, and files of a node for more of them. */
const PATIENCE_MS = { heldPicture: 250, leftNode: 250, currentNode: 750 } as const;

type PlainEvent = Extract<Input, { kind: 'event' }>['event'];

/**
 * One job in v1's words. An upstream that tells of each node (`x_node`) is believed to the letter;
 * of any other the nodes are derived from what it tells of progress and outputs. Duplicates, gaps
 * and polls in place of a stream are all the same to it; after the end it says nothing.
 */
export function step(
  state: ProgressState,
  input: Input,
): { readonly state: ProgressState; readonly effects: readonly Effect[] } {
  if (state.phase === 'ended') return { state, effects: [] };
  const turn: Turn = { state: { ...state }, effects: [], atMs: input.atMs };
  apply(turn, input);
  return { state: turn.state, effects: turn.effects };
}

/** When an `idle` input could say something; `null` when nothing waits. */
export function idleDueMs(state: ProgressState): number | null {
  if (state.phase === 'ended') return null;
  const held = state.held ? [state.held.sinceMs + PATIENCE_MS.heldPicture] : [];
  const files = state.isExact
    ? []
    : [...state.dirty].map(([id, sinceMs]) => sinceMs + patienceFor(state, id));
  const nodes = state.nodesChanged ? [state.nodesSaidAtMs + nodesPaceMs(state.runs.size)] : [];
  const due = Math.min(...held, ...files, ...nodes);
  return Number.isFinite(due) ? due : null;
}

function apply(turn: Turn, input: Input): void {
  switch (input.kind) {
    case 'event':
      return applyEvent(turn, input.event);
    case 'output':
      turn.state.files.set(input.output.id, input.file);
      return applyOutput(turn, input.output);
    case 'snapshot':
      return applySnapshot(turn, input);
    case 'settled':
      // Not ended after all: the hint was wrong, the run goes on.
      if (!IS_TERMINAL[input.job.status]) return applySnapshot(turn, input);
      return settle(turn, input);
    case 'lost':
      return endLost(turn, input.reason);
    case 'cancelled-before-start':
      return endCanceled(turn);
    case 'idle':
      return applyIdle(turn);
  }
}

function applyEvent(turn: Turn, event: PlainEvent): void {
  switch (event.event) {
    case 'status':
      return applyStatus(turn, event.data.status, event.data.x_cached_nodes);
    case 'progress':
      return applyProgress(turn, event.data);
    case 'preview':
      return applyPreview(turn, event.data);
    case 'x_node':
      return applyNode(turn, event.data);
    case 'x_text':
      sayCached(turn);
      turn.effects.push({
        kind: 'text',
        nodeId: shownId(turn, event.data.node_id),
        text: event.data.text,
      });
  }
}

/** A terminal status says nothing yet: v1's last frames need the authoritative read. */
function applyStatus(
  turn: Turn,
  status: Job['status'],
  cachedNodes: readonly string[] | undefined,
): void {
  if (status === 'running') start(turn);
  if (cachedNodes === undefined) return;
  turn.state.isExact = true;
  turn.state.cachedNodes = cachedNodes;
  if (turn.state.phase === 'started') sayCached(turn);
}

function applyProgress(turn: Turn, progress: Progress): void {
  if (isStub(progress)) return;
  start(turn);
  const nodeId = progress.current_node ?? null;
  const max = progress.steps ?? 0;
  const value = progress.step ?? null;
  if (nodeId !== null) moveTo(turn, nodeId);
  const target = nodeId ?? turn.state.current;
  if (target === null || value === null || max <= 0) return;
  report(turn, target, { value: Math.min(Math.max(value, 0), max), max });
}

/** One self-hosted upstream answers polls with all zeros whatever the job does. */
function isStub(progress: Progress): boolean {
  const says = progress.current_node ?? progress.step ?? null;
  return progress.value === 0 && progress.nodes_total === 0 && says === null;
}

/** Derived: the node before is done. Nodes that were left are not gone back to: polls may be stale. */
function moveTo(turn: Turn, nodeId: string): void {
  const { state } = turn;
  if (state.runs.has(nodeId) || displayNode(state.graph, nodeId) === undefined) return;
  if (!state.isExact) leaveCurrent(turn);
  enter(turn, nodeId);
}

function applyNode(turn: Turn, node: Extract<JobEvent, { event: 'x_node' }>['data']): void {
  const { state } = turn;
  state.isExact = true;
  start(turn);
  if (node.phase === 'started') return enter(turn, node.node_id);
  if (displayNode(state.graph, node.node_id) !== undefined) finishNode(turn, node.node_id, node.ui);
}

function applyPreview(turn: Turn, preview: Extract<JobEvent, { event: 'preview' }>['data']): void {
  const mime = sniffPreview(preview.bytes);
  // v1 has no tag for any other format.
  if (mime === undefined) return;
  const nodeId = pictureNode(turn, preview.node_id);
  if (nodeId === undefined) return;
  const kind = preview.x_own ? 'own' : 'sampler';
  const picture = { ...pictureOf(turn, nodeId), kind, mime, bytes: preview.bytes } as const;
  show(turn, picture, preview.x_with_step ? 'with-step' : 'now');
}

/** Which running node v1 clients shall see it on. Type 1 frames carry no id: the last `executing` owns them. */
function pictureNode(turn: Turn, nodeId: string): string | undefined {
  const { state } = turn;
  const isRunning = (id: string): boolean => state.runs.get(id)?.state === 'running';
  if (displayNode(state.graph, nodeId) === undefined) {
    return state.current !== null && isRunning(state.current) ? state.current : undefined;
  }
  if (!state.isExact && state.current === null) moveTo(turn, nodeId);
  return isRunning(nodeId) ? nodeId : undefined;
}

function pictureOf(turn: Turn, nodeId: string): Pick<PictureEffect, 'nodeId' | 'displayNodeId'> {
  return { nodeId, displayNodeId: shownId(turn, nodeId) };
}

function applyOutput(turn: Turn, output: Output & { readonly x_with_step?: boolean }): void {
  if (noteOutput(turn, output) === 'known') return tellWaiting(turn);
  start(turn);
  tellWaiting(turn);
  if (output.x_websocket !== true) return;
  moveTo(turn, output.node_id);
  const picture: PictureEffect = {
    ...pictureOf(turn, output.node_id),
    kind: 'result',
    assetId: output.id,
    contentType: output.content_type,
  };
  show(turn, picture, output.x_with_step ? 'with-step' : 'now');
}

function applySnapshot(
  turn: Turn,
  { job, files }: Extract<Input, { kind: 'snapshot' | 'settled' }>,
): void {
  for (const [id, file] of files) turn.state.files.set(id, file);
  applyStatus(turn, job.status, job.x_cached_nodes);
  for (const output of job.outputs) if (output.x_websocket !== true) noteOutput(turn, output);
  if (job.outputs.length > 0) start(turn);
  tellWaiting(turn);
  for (const [nodeId, ui] of Object.entries(job.x_ui ?? {})) {
    if (showUi(ui, turn.state.files)) finishNode(turn, nodeId, ui);
  }
  if (job.progress) applyProgress(turn, job.progress);
}

function applyIdle(turn: Turn): void {
  const { state } = turn;
  sayNodesIfDue(turn);
  if (state.held && hasWaited(turn, state.held.sinceMs, PATIENCE_MS.heldPicture))
    releasePicture(turn);
  if (state.isExact) return;
  for (const [nodeId, sinceMs] of state.dirty) {
    if (hasWaited(turn, sinceMs, patienceFor(state, nodeId))) tellDirty(turn, nodeId);
  }
}

/** A clock that was set back must not make it wait for that hour once more. */
function hasWaited({ atMs }: Turn, sinceMs: number, patienceMs: number): boolean {
  return atMs < sinceMs || atMs - sinceMs >= patienceMs;
}

function patienceFor(state: ProgressState, nodeId: string): number {
  return nodeId === state.current ? PATIENCE_MS.currentNode : PATIENCE_MS.leftNode;
}
