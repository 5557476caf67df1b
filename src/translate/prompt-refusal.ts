import {
  type Json,
  type JsonObject,
  entriesInOrder,
  isJsonObject,
  namesInOrder,
} from '../protocol/json.ts';
import { errorCodeOf } from '../protocol/error-codes.ts';
import type { V2Error } from '../protocol/job-api.ts';
import { promptRefusal } from '../protocol/node-errors.ts';
import type { NodeErrors, PromptRefusal } from '../protocol/v1.ts';
import type { Graph, JobError } from '../protocol/v2.ts';
import { classOf } from './graph.ts';
import {
  type MissingContext,
  missingFiles,
  missingNodeError,
  toNodeErrors,
  unknownClass,
} from './node-errors.ts';

/** A v1 answer to a refusal of v2. */
export type V1Refusal = {
  readonly status: number;
  readonly body: PromptRefusal;
  readonly retryAfterSeconds?: number;
};

/** The message of a fault that v2's generic answer does not describe. */
const UPSTREAM_FAILED = 'The job service failed. Please try again.';

/**
 * Returns the answer of `POST /prompt` when v2 refuses the job. `context` has facts that only the
 * caller knows.
 */
export function toPromptRefusal(
  error: V2Error,
  graph: Graph,
  context: MissingContext = {},
): V1Refusal {
  const { status, type } = v1AnswerOf(error);
  const details = isJsonObject(error.details) ? error.details : {};
  const known =
    type === 'prompt_outputs_failed_validation' ? knownMessage(error, graph) : undefined;
  const node_errors =
    error.code === 'missing_asset'
      ? missingFiles(details, graph, context)
      : toNodeErrors(details, graph, context.outputs ?? []);
  const stated = nativeError(details.error) ?? unknownClass(details.node_errors, graph) ?? known;
  const hasNodeErrors =
    type === 'prompt_outputs_failed_validation' && Object.keys(node_errors).length > 0;
  const message = hasNodeErrors ? VALIDATION_FAILED : messageOf(error);
  const texts = nodeMessages(node_errors, context.outputs ?? []);
  const { error: ownError } = promptRefusal(type, message, texts);
  const answer = { status, body: { error: stated ?? ownError, node_errors } };
  const { retryAfterSeconds } = error;
  const isWorthWaiting = retryAfterSeconds !== undefined && !errorCodeOf(error.code)?.needsOperator;
  return isWorthWaiting ? { ...answer, retryAfterSeconds } : answer;
}

/**
 * Messages of the engine about a whole prompt: one server passes on the message but not its type.
 */
const KNOWN_MESSAGES: readonly (readonly [RegExp, string])[] = [
  [/^Prompt has no outputs$/, 'prompt_no_outputs'],
  [/^Cannot execute because /, 'invalid_prompt'],
  [/^Node '.*' not found/s, 'missing_node_type'],
  [/^No prompt provided$/, 'no_prompt'],
];

/** How engines report a class that is not installed: older ones name it, newer ones the title of its node. */
const MISSING_CLASS = /^Cannot execute because node ([^ ]+) does not exist\b/;
const MISSING_TITLE = /^Node '.*' not found\b/s;

function knownMessage(error: V2Error, graph: Graph): PromptRefusal['error'] | undefined {
  const { message } = error;
  const found = KNOWN_MESSAGES.find(([text]) => text.test(message));
  if (!found) return undefined;
  const named = MISSING_CLASS.exec(message)?.[1];
  const [start] = MISSING_TITLE.exec(message) ?? [];
  const missing = entriesInOrder(graph).find(([id, node]) =>
    start === undefined
      ? named !== undefined && classOf(graph, id) === named
      : missingNodeError(id, node).message.startsWith(start),
  );
  if (missing) return missingNodeError(...missing);
  return promptRefusal(found[1], message).error;
}

/** The job service could not be reached, so nothing was submitted: the client may try again. */
export function unreachableUpstream(): V1Refusal {
  const message = 'The job service cannot be reached right now. Nothing was submitted.';
  return { status: 502, body: promptRefusal('upstream_unavailable', message) };
}

/** Another process took the prompt over before this one had recorded it. */
export function serverStalled(): V1Refusal {
  const message =
    'This server did not respond for too long. Nothing was submitted, please try again.';
  return { status: 503, body: promptRefusal('server_stalled', message) };
}

/**
 * The outcome is unknown. A search for the job runs in the background, and its result is shown
 * under `promptId`.
 */
export function submitUnknown(promptId: string): V1Refusal {
  const message =
    'It is not known whether the job service took this prompt. It is looked for under the prompt id ' +
    'in extra_info; submitting again may run it twice.';
  const body = promptRefusal('submit_outcome_unknown', message, 'submit_outcome_unknown');
  const stated = { ...body.error, extra_info: { prompt_id: promptId } };
  return { status: 500, body: { ...body, error: stated } };
}

/**
 * Returns the outputs without errors: v1 runs them and reports the others. A refusal that names no
 * node applies to all outputs.
 */
export function outputsWithoutErrors(
  nodeErrors: NodeErrors,
  outputs: readonly string[],
): readonly string[] {
  const failed = Object.entries(nodeErrors);
  if (failed.length === 0) return [];
  const bad = new Set(failed.flatMap(([id, { dependent_outputs }]) => [id, ...dependent_outputs]));
  return outputs.filter((id) => !bad.has(id));
}

/** Refuses a graph that is not in the API format. The original answers 500 to most of these. */
export function refuseShape(graph: JsonObject): V1Refusal | undefined {
  if (Array.isArray(graph.nodes) || Array.isArray(graph.links)) {
    const message = 'This is a workflow in the UI format. Export it in API format.';
    return { status: 400, body: promptRefusal('invalid_prompt', message) };
  }
  const bad = entriesInOrder(graph).find(
    ([, node]) => !isJsonObject(node) || typeof node.class_type !== 'string',
  );
  return bad && { status: 400, body: { error: missingNodeError(...bad), node_errors: {} } };
}

const VALIDATION_FAILED = 'Prompt outputs failed validation';

function v1AnswerOf(error: V2Error): { readonly status: number; readonly type: string } {
  if (isAboutSubscription(error)) return { status: 429, type: 'subscription_inactive' };
  const { v1Status, v1Type } = errorCodeOf(error.code) ?? {};
  return { status: v1Status ?? statusOf(error.status), type: v1Type ?? error.code };
}

const MAY_BE_ABOUT_SUBSCRIPTION: ReadonlySet<number> = new Set([402, 403, 429]);

/**
 * True when an error is about a subscription: by its code when that is specific, else by its text.
 */
export function isAboutSubscription({ status, code, message }: V2Error): boolean {
  if (!MAY_BE_ABOUT_SUBSCRIPTION.has(status)) return false;
  if (code === 'forbidden') return /subscription/i.test(message);
  const isKnown = errorCodeOf(code)?.v1Type !== undefined;
  return !isKnown && /subscription/i.test(`${code} ${message}`);
}

/** True when a submission is refused for lack of capacity, which may exist later. */
export function isCapacityRefusal({ status, code }: V2Error): boolean {
  return status === 429 && errorCodeOf(code)?.lacksCapacity === true;
}

/** Returns the status of a refusal whose code v1 does not know. */
function statusOf(status: number): number {
  if (status === 429) return 503;
  if (status === 409 || status < 400) return 500;
  if (status >= 600) return 502;
  return status === 422 || status === 413 ? 400 : status;
}

/** Returns the message of a refusal. It does not describe the inside of the service. */
export function messageOf({ code, status, message }: V2Error): string {
  return code === 'upstream_error' && status >= 500 ? UPSTREAM_FAILED : message;
}

function nativeError(value: Json | undefined): PromptRefusal['error'] | undefined {
  if (!isJsonObject(value) || typeof value.type !== 'string') return undefined;
  return {
    type: value.type,
    message: typeof value.message === 'string' ? value.message : '',
    details: typeof value.details === 'string' ? value.details : '',
    extra_info: isJsonObject(value.extra_info) ? value.extra_info : {},
  };
}

/**
 * Returns the job error of a prompt that is refused after it was accepted: the refusal can only be
 * shown as a failed run, on the first node with an error.
 */
export function jobErrorOf(error: V2Error, { body }: V1Refusal, graph: Graph): JobError {
  const [nodeId] = namesInOrder(body.node_errors);
  const { message, details } = body.error;
  const ofNode = nodeId === undefined ? '' : nodeMessages(body.node_errors, [nodeId]);
  return {
    code: error.code,
    message: [message, details, ofNode]
      .filter((text, i, all) => text !== '' && all.indexOf(text) === i)
      .join('\n'),
    ...(nodeId !== undefined && { node_id: nodeId, class_type: classOf(graph, nodeId) }),
  };
}

/** Joins the errors of these nodes. v1 shows those of the output nodes themselves. */
function nodeMessages(nodeErrors: NodeErrors, ids: readonly string[]): string {
  const errors = ids.flatMap((id) =>
    Object.hasOwn(nodeErrors, id) ? (nodeErrors[id]?.errors ?? []) : [],
  );
  return errors.map(({ message, details }) => `${message}: ${details}`).join('\n');
}
