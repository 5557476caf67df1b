import { sniffPreview } from '../../protocol/binary-frames.ts';
import type { JobEventData } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job, type Output, type Progress } from '../../protocol/v2.ts';
import { classOf, displayNode } from '../graph.ts';
import {
  finishNode,
  finishCurrent,
  recordOutput,
  emitFiles,
  emitNamedUi,
} from './progress-outputs.ts';
import { endLost, finishWithJob } from './progress-end.ts';
import {
  type ProgressUpdate,
  stateIntervalMs,
  startNode,
  emitPendingPicture,
  emitStep,
  emitCached,
  emitPendingState,
  hasWaited,
  displayIdOf,
  emitPicture,
  resultPicture,
  startPrompt,
} from './progress-emit.ts';
import type {
  JobRead,
  PictureKind,
  ProgressEffect,
  ProgressInput,
  ProgressState,
} from './progress-state.ts';
import { isListed, v1OutputOf } from '../outputs.ts';

/** How long a picture waits for its step, and how long a node with files waits for more files. */
const MAX_WAIT_MS = { heldPicture: 250, leftNode: 250, currentNode: 750 } as const;

type PlainEvent = Extract<ProgressInput, { kind: 'event' }>['event'];

/**
 * Translates the events of one job into v1 messages. If the upstream reports each node (`x_node`),
 * these reports are used; else nodes are derived from progress and outputs. Duplicates, gaps and
 * polls in place of a stream make no difference. After the end no message is emitted.
 */
export function reduceProgress(
  state: ProgressState,
  input: ProgressInput,
): { readonly state: ProgressState; readonly effects: readonly ProgressEffect[] } {
  if (state.phase === 'ended') return { state, effects: [] };
  const update: ProgressUpdate = { state: { ...state }, effects: [], atMs: input.atMs };
  apply(update, input);
  return { state: update.state, effects: update.effects };
}

/** When an `idle` input could emit something; `null`: nothing is pending. */
export function idleDueMs(state: ProgressState): number | null {
  if (state.phase === 'ended') return null;
  let due = Infinity;
  for (const { sinceMs, maxMs } of waitsOf(state)) due = Math.min(due, sinceMs + maxMs);
  return Number.isFinite(due) ? due : null;
}

/** Something that is emitted after a time if no other input emits it before. */
type Wait = {
  readonly sinceMs: number;
  readonly maxMs: number;
  readonly emit: (update: ProgressUpdate) => void;
};

function* waitsOf(state: ProgressState): Generator<Wait> {
  const { pendingPicture: held, runs, stateSentAtMs } = state;
  if (state.hasStateChanged)
    yield { sinceMs: stateSentAtMs, maxMs: stateIntervalMs(runs.size), emit: emitPendingState };
  if (held)
    yield { sinceMs: held.sinceMs, maxMs: MAX_WAIT_MS.heldPicture, emit: emitPendingPicture };
  if (state.isExact) return;
  for (const [nodeId, sinceMs] of state.unsentFiles) {
    const maxMs = nodeId === state.current ? MAX_WAIT_MS.currentNode : MAX_WAIT_MS.leftNode;
    yield { sinceMs, maxMs, emit: (update) => emitFiles(update, nodeId) };
  }
}

function apply(update: ProgressUpdate, input: ProgressInput): void {
  switch (input.kind) {
    case 'event':
      return applyEvent(update, input.event);
    case 'output':
      update.state.files.set(input.output.id, input.file);
      return applyOutput(update, input.output);
    case 'snapshot':
      return applySnapshot(update, input);
    case 'settled':
      // The job has not ended: the hint was wrong, and the run goes on.
      if (!IS_TERMINAL[input.job.status]) return applySnapshot(update, input);
      return finishWithJob(update, input);
    case 'lost':
      return endLost(update, input.reason);
    case 'idle':
      return applyIdle(update);
  }
}

function applyEvent(update: ProgressUpdate, event: PlainEvent): void {
  switch (event.event) {
    case 'status':
      return applyStatus(update, event.data.status, event.data.x_cached_nodes);
    case 'progress':
      return applyProgress(update, event.data, event.data.x_polled ? 'poll' : 'stream');
    case 'preview':
      return applyPreview(update, event.data);
    case 'x_node':
      return applyNode(update, event.data);
    case 'x_text':
      emitCached(update);
      update.effects.push({
        kind: 'text',
        nodeId: displayIdOf(update, event.data.node_id),
        text: event.data.text,
      });
  }
}

/** Applies a status. A terminal one emits nothing, since v1's last frames need the job itself. */
function applyStatus(
  update: ProgressUpdate,
  status: Job['status'],
  cachedNodes: readonly string[] | undefined,
): void {
  if (status === 'running') startPrompt(update);
  if (cachedNodes === undefined) return;
  update.state.isExact = true;
  update.state.cachedNodes = cachedNodes;
  if (update.state.phase === 'started') emitCached(update);
}

function applyProgress(
  update: ProgressUpdate,
  progress: Progress,
  source: 'stream' | 'poll',
): void {
  const { state } = update;
  // An exact upstream has reported more than this already.
  if (isStub(progress) || (state.isExact && progress.value < state.overall)) return;
  if (state.isExact) state.overall = progress.value;
  startPrompt(update);
  const nodeId = progress.current_node ?? null;
  const max = progress.steps ?? 0;
  const value = progress.step ?? null;
  if (nodeId !== null) moveTo(update, nodeId);
  const target = nodeId ?? state.current;
  if (target === null || value === null || max <= 0) return;
  emitStep(update, target, { value: Math.min(Math.max(value, 0), max), max, source });
}

/**
 * True for a placeholder: one self-hosted upstream answers polls with zeros, whatever the job does.
 */
function isStub(progress: Progress): boolean {
  const content = progress.current_node ?? progress.step ?? null;
  return progress.value === 0 && progress.nodes_total === 0 && content === null;
}

/**
 * For derived progress: the previous node is finished. A finished node does not run again, since
 * polls may be stale.
 */
function moveTo(update: ProgressUpdate, nodeId: string): void {
  const { state } = update;
  if (state.runs.has(nodeId) || displayNode(state.graph, nodeId) === undefined) return;
  if (!state.isExact) finishCurrent(update);
  startNode(update, nodeId);
}

function applyNode(update: ProgressUpdate, node: JobEventData['x_node']): void {
  const { state } = update;
  state.isExact = true;
  startPrompt(update);
  if (node.phase === 'started') return startNode(update, node.node_id);
  if (displayNode(state.graph, node.node_id) !== undefined)
    finishNode(update, node.node_id, node.ui);
}

function applyPreview(update: ProgressUpdate, preview: JobEventData['preview']): void {
  const mime = sniffPreview(preview.bytes);
  // v1 has no type for pictures of other formats.
  if (mime === undefined) return;
  if (sendsResults(update, preview.node_id)) moveTo(update, preview.node_id);
  const nodeId = runningNodeFor(update, preview.node_id);
  if (nodeId === undefined) return;
  const kind = sendsResults(update, nodeId) ? 'result' : kindOf(preview);
  const displayNodeId = displayIdOf(update, nodeId);
  const picture = { nodeId, displayNodeId, kind, mime, bytes: preview.bytes } as const;
  emitPicture(update, picture, preview.x_with_step ? 'with-step' : 'now');
}

/** True for the class whose results are pictures on the socket. A service sends them as previews. */
function sendsResults({ state }: ProgressUpdate, nodeId: string): boolean {
  return classOf(state.graph, nodeId) === 'SaveImageWebsocket';
}

function kindOf(preview: JobEventData['preview']): PictureKind {
  if (preview.x_own) return 'own';
  return preview.x_sampler ? 'sampler' : 'unmarked';
}

/**
 * Returns the running node that gets the picture. Type 1 frames have no node id: they belong to the
 * node of the last `executing`.
 */
function runningNodeFor(update: ProgressUpdate, nodeId: string): string | undefined {
  const { state } = update;
  const isRunning = (id: string): boolean => state.runs.get(id)?.state === 'running';
  if (displayNode(state.graph, nodeId) === undefined) {
    return state.current !== null && isRunning(state.current) ? state.current : undefined;
  }
  if (!state.isExact && state.current === null) moveTo(update, nodeId);
  return isRunning(nodeId) ? nodeId : undefined;
}

function applyOutput(
  update: ProgressUpdate,
  output: Output & { readonly x_with_step?: boolean },
): void {
  if (recordOutput(update, output) === 'known') return emitNamedUi(update);
  startPrompt(update);
  emitNamedUi(update);
  if (isListed(output)) return;
  moveTo(update, output.node_id);
  emitPicture(update, resultPicture(update, output), output.x_with_step ? 'with-step' : 'now');
}

function applySnapshot(update: ProgressUpdate, { job, files }: JobRead): void {
  for (const [id, file] of files) update.state.files.set(id, file);
  applyStatus(update, job.status, job.x_cached_nodes);
  for (const output of job.outputs) if (isListed(output)) recordOutput(update, output);
  if (job.outputs.length > 0) startPrompt(update);
  emitNamedUi(update);
  for (const [nodeId, ui] of Object.entries(job.x_ui ?? {})) {
    if (v1OutputOf(ui, update.state.files)) finishNode(update, nodeId, ui);
  }
  if (job.progress) applyProgress(update, job.progress, 'poll');
}

function applyIdle(update: ProgressUpdate): void {
  for (const { sinceMs, maxMs, emit } of waitsOf(update.state))
    if (hasWaited(update, sinceMs, maxMs)) emit(update);
}
