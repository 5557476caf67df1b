import type { Json } from '../../protocol/json.ts';
import type { V1Message } from '../../protocol/v1.ts';
import type { Job, JobError } from '../../protocol/v2.ts';
import { exceptionTypes, tracebackLines } from '../exception-types.ts';
import { classOf, linkOf, nodeOf } from '../graph.ts';
import { shortIds, shortInputs, shortLines, shortText } from './frame-limits.ts';
import { isListed, v1OutputsOf } from '../outputs.ts';
import type { JobRead } from './progress-state.ts';
import {
  type ProgressUpdate,
  emitIfChanged,
  startNode,
  markFinished,
  emitPendingPicture,
  emitCached,
  emitForHistory,
  emitPendingState,
  emitPicture,
  displayIdOf,
  resultPicture,
} from './progress-emit.ts';
import type { Outcome } from '../status.ts';

/** Emits everything that is missing of an ended job, then its end. */
export function finishWithJob(update: ProgressUpdate, { job, files }: JobRead): void {
  const { state } = update;
  for (const [id, file] of files) state.files.set(id, file);
  if (job.x_cached_nodes && !state.cachedNodes) state.cachedNodes = job.x_cached_nodes;
  const neverRan = job.status === 'canceled' && job.started_at === null && job.outputs.length === 0;
  if (neverRan) return endCanceled(update);
  emitCached(update);
  emitPendingPicture(update);
  emitMissedPictures(update, job.outputs);
  for (const [nodeId, output] of v1OutputsOf(job, state.files, state.graph))
    if (isShown(update, job, nodeId)) emitIfChanged(update, nodeId, output);
  if (job.status === 'succeeded') return endSucceeded(update);
  if (job.status === 'failed') {
    return endWithError(update, 'failed', job.error ?? UNEXPLAINED_ERROR);
  }
  if (job.status === 'canceled') return endCanceled(update);
  return endLost(update, 'its record has expired');
}

/**
 * False for the output of a node that failed or was interrupted: the original shows none. Only an
 * upstream that reports each node says which one that is.
 */
function isShown({ state }: ProgressUpdate, { status, x_ui: ui }: Job, nodeId: string): boolean {
  if (status === 'succeeded' || ui === undefined) return true;
  return Object.hasOwn(ui, nodeId) || state.runs.get(nodeId)?.state === 'finished';
}

/**
 * Ends a prompt whose job ended in an unknown way. v1 has a status word for this, and clients need
 * an error.
 */
export function endLost(update: ProgressUpdate, reason: string): void {
  const error = { code: 'lost', message: `job lost: ${reason}`, x_exception_type: 'ServiceError' };
  endWithError(update, 'lost', error);
}

/**
 * Ends a prompt that was interrupted or deleted from the queue. After a deletion the original sends
 * nothing, and waiting clients hang; Holdover sends the interruption and the end, without a start.
 */
function endCanceled(update: ProgressUpdate): void {
  const { state, atMs } = update;
  if (state.phase === 'started') emitCached(update);
  emitPendingPicture(update);
  emitPendingState(update);
  const nodeId = displayIdOf(update, state.current ?? '');
  const data = {
    prompt_id: state.promptId,
    node_id: nodeId,
    node_type: classOf(state.graph, nodeId),
    executed: shortIds(state.executed),
    timestamp: atMs,
  };
  emitForHistory(update, { type: 'execution_interrupted', data });
  closeProgress(update, 'canceled');
}

const UNEXPLAINED_ERROR: JobError = { code: 'job_failed', message: 'execution failed' };

function endSucceeded(update: ProgressUpdate): void {
  const { state, atMs } = update;
  for (const [nodeId, run] of state.runs) if (run.state === 'running') markFinished(update, nodeId);
  emitPendingState(update);
  emitForHistory(update, {
    type: 'execution_success',
    data: { prompt_id: state.promptId, timestamp: atMs },
  });
  closeProgress(update, 'succeeded');
}

function endWithError(update: ProgressUpdate, outcome: 'failed' | 'lost', error: JobError): void {
  emitCached(update);
  emitPendingPicture(update);
  emitPendingState(update);
  update.state.error = error;
  const { own, documented } = exceptionTypes(error);
  emitForHistory(update, errorMessage(update, error, own), documented);
  closeProgress(update, outcome);
}

function closeProgress(update: ProgressUpdate, outcome: Outcome): void {
  const { state, atMs } = update;
  Object.assign(state, { phase: 'ended', outcome, endedAtMs: atMs });
  const closing = { type: 'executing', data: { node: null, prompt_id: state.promptId } } as const;
  update.effects.push({ kind: 'end', outcome, closing });
}

/**
 * Makes the error message, with its keys in v1's order. `current_outputs` names all nodes of the
 * prompt, cached or not.
 */
function errorMessage(update: ProgressUpdate, error: JobError, exceptionType: string): V1Message {
  const { state, atMs } = update;
  const nodeId = displayIdOf(update, error.node_id ?? state.current ?? '');
  return {
    type: 'execution_error',
    data: {
      prompt_id: state.promptId,
      node_id: nodeId,
      node_type: classOf(state.graph, nodeId) || (error.class_type ?? ''),
      executed: shortIds(state.executed),
      exception_message: shortText(error.message).replace(/(?<!\n)\n*$/, '\n'),
      exception_type: exceptionType,
      traceback: shortLines(tracebackLines(error.traceback)),
      current_inputs: shortInputs(error.x_current_inputs ?? literalInputs(update, nodeId)),
      current_outputs: shortIds(Object.keys(state.graph)),
      timestamp: atMs,
    },
  };
}

/**
 * Returns the inputs as they were submitted: only the upstream knows the values of linked inputs.
 */
function literalInputs(
  update: ProgressUpdate,
  nodeId: string,
): { readonly [name: string]: readonly Json[] } {
  const inputs = Object.entries(nodeOf(update.state.graph, nodeId)?.inputs ?? {});
  const literal = inputs.filter(([, value]) => linkOf(value) === undefined);
  return Object.fromEntries(literal.map(([name, value]) => [name, [value]]));
}

/**
 * Emits the socket images that the stream has missed, each on its own node. They are results, so
 * they come before the end.
 */
function emitMissedPictures(update: ProgressUpdate, outputs: Job['outputs']): void {
  const { state } = update;
  for (const output of outputs) {
    if (isListed(output) || state.outputs.has(output.id)) continue;
    state.outputs.set(output.id, output);
    startNode(update, output.node_id);
    emitPicture(update, resultPicture(update, output), 'now');
  }
}
