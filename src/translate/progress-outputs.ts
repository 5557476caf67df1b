import type { NodeUi, Output } from '../wire/v2.ts';
import { classOf } from './graph.ts';
import { addTo, isListed, ownerOf, showFiles, showUi } from './outputs.ts';
import { type Turn, announce, finish, releasePicture, sayCached } from './progress-turn.ts';

/** Remembers an output; a node with files nobody was told of becomes dirty. */
export function noteOutput(turn: Turn, output: Output): 'new' | 'known' {
  const { state, atMs } = turn;
  if (state.outputs.has(output.id)) return 'known';
  state.outputs.set(output.id, output);
  if (!isListed(output)) return 'new';
  const owner = ownerOf(output, state.graph);
  addTo(state.outputsOf, owner, output);
  state.dirty.set(owner, atMs);
  return 'new';
}

/**
 * The upstream says that a node is done. `ui` absent: it says nothing and shows nothing. A node
 * that shows files not yet named tells of them as soon as they are.
 */
export function finishNode(turn: Turn, nodeId: string, ui: NodeUi | null | undefined): void {
  const { state } = turn;
  if (state.runs.get(nodeId)?.state === 'finished') return;
  sayCached(turn);
  if (state.held?.picture.nodeId === nodeId) releasePicture(turn);
  if (ui === null) announce(turn, nodeId, null);
  else if (ui) tellUi(turn, nodeId, ui);
  finish(turn, nodeId);
}

/** Nodes whose files have got their names by now. */
export function tellWaiting(turn: Turn): void {
  for (const [nodeId, ui] of turn.state.waiting) tellUi(turn, nodeId, ui);
}

/** Derived: the files of a node, all it has so far; said again when more of them come. */
export function tellDirty(turn: Turn, nodeId: string): void {
  const { state } = turn;
  if (!state.dirty.has(nodeId)) return;
  const own = state.outputsOf.get(nodeId) ?? [];
  announce(turn, nodeId, showFiles(own, state.files, classOf(state.graph, nodeId)));
}

/** Derived: another node is at work, so the one before is done. */
export function leaveCurrent(turn: Turn): void {
  const { current, held } = turn.state;
  if (current === null) return;
  if (held?.picture.nodeId === current) releasePicture(turn);
  tellDirty(turn, current);
  finish(turn, current);
}

function tellUi(turn: Turn, nodeId: string, ui: NodeUi): void {
  const output = showUi(ui, turn.state.files);
  if (output) return announce(turn, nodeId, output);
  turn.state.waiting.set(nodeId, ui);
}
