import { type Json, isSameJson } from '../wire/json.ts';
import type { NodeOutput, V1Message } from '../wire/v1.ts';
import type { JobError } from '../wire/v2.ts';
import { exceptionTypes, tracebackLines } from './exception.ts';
import { classOf, linkSource, nodeOf } from './graph.ts';
import { shortIds, shortInputs, shortLines, shortText } from './limits.ts';
import { showJob } from './outputs.ts';
import type { Input, PictureEffect } from './progress-state.ts';
import {
  type Turn,
  announce,
  enter,
  finish,
  releasePicture,
  sayCached,
  sayForHistory,
  sayNodesLeft,
  show,
  shownId,
} from './progress-turn.ts';
import type { Outcome } from './status.ts';

/** Says everything that is still unsaid of an ended job, then its end. */
export function settle(turn: Turn, { job, files }: Extract<Input, { kind: 'settled' }>): void {
  const { state } = turn;
  for (const [id, file] of files) state.files.set(id, file);
  if (job.x_cached_nodes && !state.cachedNodes) state.cachedNodes = job.x_cached_nodes;
  const neverRan = job.status === 'canceled' && job.started_at === null && job.outputs.length === 0;
  if (neverRan) return endCanceled(turn);
  sayCached(turn);
  releasePicture(turn);
  tellMissedPictures(
    turn,
    job.outputs.filter((output) => output.x_websocket === true),
  );
  for (const [nodeId, output] of showJob(job, state.files, state.graph))
    tellIfNews(turn, nodeId, output);
  if (job.status === 'succeeded') return endSucceeded(turn);
  if (job.status === 'failed') return endFailed(turn, job.error ?? UNEXPLAINED);
  if (job.status === 'canceled') return endCanceled(turn);
  return endLost(turn, 'its record has expired');
}

/** The job ended without anybody knowing how: v1 has a status word for it, and clients need an error. */
export function endLost(turn: Turn, reason: string): void {
  const error = { code: 'lost', message: `job lost: ${reason}`, x_exception_type: 'ServiceError' };
  end(turn, 'lost', error);
}

/**
 * Interrupted, or taken out of the queue. The original says nothing in the latter case and waiting
 * clients hang; ours get the interruption and the end, without a start.
 */
export function endCanceled(turn: Turn): void {
  const { state, atMs } = turn;
  if (state.phase === 'started') sayCached(turn);
  releasePicture(turn);
  sayNodesLeft(turn);
  const nodeId = state.current ?? '';
  const data = {
    prompt_id: state.promptId,
    node_id: nodeId,
    node_type: classOf(state.graph, nodeId),
    executed: shortIds(state.executed),
    timestamp: atMs,
  };
  sayForHistory(turn, { type: 'execution_interrupted', data });
  close(turn, 'canceled');
}

const UNEXPLAINED: JobError = { code: 'job_failed', message: 'execution failed' };

function endSucceeded(turn: Turn): void {
  const { state, atMs } = turn;
  for (const [nodeId, run] of state.runs) if (run.state === 'running') finish(turn, nodeId);
  sayNodesLeft(turn);
  sayForHistory(turn, {
    type: 'execution_success',
    data: { prompt_id: state.promptId, timestamp: atMs },
  });
  close(turn, 'succeeded');
}

function endFailed(turn: Turn, error: JobError): void {
  end(turn, 'failed', error);
}

function end(turn: Turn, outcome: 'failed' | 'lost', error: JobError): void {
  sayCached(turn);
  releasePicture(turn);
  sayNodesLeft(turn);
  turn.state.error = error;
  const { own, documented } = exceptionTypes(error);
  sayForHistory(turn, errorMessage(turn, error, own), { documented });
  close(turn, outcome);
}

function close(turn: Turn, outcome: Outcome): void {
  const { state, atMs } = turn;
  Object.assign(state, { phase: 'ended', outcome, endedAtMs: atMs });
  const closing = { type: 'executing', data: { node: null, prompt_id: state.promptId } } as const;
  turn.effects.push({ kind: 'end', outcome, closing });
}

/** Keys in v1's order. It names all nodes of the prompt as `current_outputs`, cached or not. */
function errorMessage(turn: Turn, error: JobError, exceptionType: string): V1Message {
  const { state, atMs } = turn;
  const nodeId = shownId(turn, error.node_id ?? state.current ?? '');
  return {
    type: 'execution_error',
    data: {
      prompt_id: state.promptId,
      node_id: nodeId,
      node_type: classOf(state.graph, nodeId) || (error.class_type ?? ''),
      executed: shortIds(state.executed),
      exception_message: shortText(error.message).replace(/\n*$/, '\n'),
      exception_type: exceptionType,
      traceback: shortLines(tracebackLines(error.traceback)),
      current_inputs: shortInputs(error.x_current_inputs ?? literalInputs(turn, nodeId)),
      current_outputs: shortIds(Object.keys(state.graph)),
      timestamp: atMs,
    },
  };
}

/** As submitted: what linked inputs held when it failed is known to the upstream only. */
function literalInputs(turn: Turn, nodeId: string): { readonly [name: string]: readonly Json[] } {
  const inputs = Object.entries(nodeOf(turn.state.graph, nodeId)?.inputs ?? {});
  const literal = inputs.filter(([, value]) => linkSource(value) === undefined);
  return Object.fromEntries(literal.map(([name, value]) => [name, [value]]));
}

function tellIfNews(turn: Turn, nodeId: string, output: NodeOutput): void {
  const said = turn.state.announced.get(nodeId);
  if (said === undefined || !isSameJson(said, output)) announce(turn, nodeId, output);
}

/** Socket images are results: those the stream lost are sent before the end, on their own node. */
function tellMissedPictures(
  turn: Turn,
  outputs: Extract<Input, { kind: 'settled' }>['job']['outputs'],
): void {
  const { state } = turn;
  for (const output of outputs.filter(({ id }) => !state.outputs.has(id))) {
    state.outputs.set(output.id, output);
    enter(turn, output.node_id);
    show(turn, missedPicture(turn, output), 'now');
  }
}

function missedPicture(
  turn: Turn,
  output: { readonly id: string; readonly node_id: string; readonly content_type: string },
): PictureEffect {
  return {
    nodeId: output.node_id,
    displayNodeId: shownId(turn, output.node_id),
    kind: 'result',
    assetId: output.id,
    contentType: output.content_type,
  };
}
