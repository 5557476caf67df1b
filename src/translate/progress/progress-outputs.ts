import type { NodeUi, Output } from '../../protocol/v2.ts';
import { addTo, classOf } from '../graph.ts';
import { isListed, ownerOf, v1FilesOf, v1OutputOf } from '../outputs.ts';
import {
  type ProgressUpdate,
  emitExecuted,
  emitIfChanged,
  markFinished,
  emitPendingPicture,
  emitCached,
} from './progress-emit.ts';

/** Records an output. A node with files that were not sent yet is marked for sending. */
export function recordOutput(update: ProgressUpdate, output: Output): 'new' | 'known' {
  const { state, atMs } = update;
  if (state.outputs.has(output.id)) return 'known';
  state.outputs.set(output.id, output);
  if (!isListed(output)) return 'new';
  const owner = ownerOf(output, state.graph);
  addTo(state.outputsOf, owner, output);
  state.unsentFiles.set(owner, atMs);
  return 'new';
}

/**
 * Finishes a node that the upstream reports as finished. `ui` absent: the node has no output, and
 * none is sent. A node whose files have no names yet is sent as soon as they have.
 */
export function finishNode(
  update: ProgressUpdate,
  nodeId: string,
  ui: NodeUi | null | undefined,
): void {
  const { state } = update;
  if (state.runs.get(nodeId)?.state === 'finished') return;
  emitCached(update);
  if (state.pendingPicture?.picture.nodeId === nodeId) emitPendingPicture(update);
  if (ui === null) emitExecuted(update, nodeId, null);
  else if (ui) emitUi(update, nodeId, ui);
  markFinished(update, nodeId);
}

/** Emits the nodes whose files have got their names. */
export function emitNamedUi(update: ProgressUpdate): void {
  for (const [nodeId, ui] of update.state.unnamedUi) emitUi(update, nodeId, ui);
}

/** For derived progress: emits all files of a node so far. Repeated when more files come. */
export function emitFiles(update: ProgressUpdate, nodeId: string): void {
  const { state } = update;
  if (!state.unsentFiles.has(nodeId)) return;
  const own = state.outputsOf.get(nodeId) ?? [];
  emitExecuted(update, nodeId, v1FilesOf(own, state.files, classOf(state.graph, nodeId)));
}

/** For derived progress: another node runs, so the previous one is finished. */
export function finishCurrent(update: ProgressUpdate): void {
  const { current, pendingPicture: held } = update.state;
  if (current === null) return;
  if (held?.picture.nodeId === current) emitPendingPicture(update);
  emitFiles(update, current);
  markFinished(update, current);
}

function emitUi(update: ProgressUpdate, nodeId: string, ui: NodeUi): void {
  const output = v1OutputOf(ui, update.state.files);
  // The files may have been sent already, when earlier events were lost.
  if (output) return emitIfChanged(update, nodeId, output);
  update.state.unnamedUi.set(nodeId, ui);
}
