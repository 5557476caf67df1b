import { type Json, type JsonObject, isJsonObject } from '../protocol/json.ts';
import type { V2Error } from '../protocol/job-api.ts';
import type { NodeErrors, PromptRefusal } from '../protocol/v1.ts';
import type { Graph } from '../protocol/v2.ts';
import { classOf } from './graph.ts';
import { type MissingContext, missingFiles, toNodeErrors, unknownClass } from './node-errors.ts';

/** A v1 answer to what v2 refused. */
export type V1Refusal = {
  readonly status: number;
  readonly body: PromptRefusal;
  readonly retryAfterSeconds?: number;
};

type ErrorRow = {
  readonly status: number;
  readonly type: string;
  /** With status 429: there is no capacity, which may exist later. The prompt waits in the outbox. */
  readonly lacksCapacity?: true;
};

/**
 * v2 error code to v1 status and `error.type`: the contract's codes in its order, then others that
 * services use. To add a code, add a row here beside the file that refuses with it: a code without a
 * row keeps its name and most statuses. v1 clients read 429 as "subscription not active", so a wait is answered 503.
 */
const ERROR_TABLE = {
  invalid_workflow: { status: 400, type: 'prompt_outputs_failed_validation' },
  workflow_format_ui: { status: 400, type: 'invalid_prompt' },
  missing_asset: { status: 400, type: 'prompt_outputs_failed_validation' },
  // The upload was damaged between this server and v2; the client sent it correctly.
  hash_mismatch: { status: 500, type: 'hash_mismatch' },
  blob_not_found: { status: 404, type: 'not_found' },
  // This server chose the key: the client did nothing wrong, and it is unknown whether the job
  // exists.
  idempotency_key_reuse: { status: 500, type: 'outcome_unknown' },
  queue_full: { status: 503, type: 'queue_full', lacksCapacity: true },
  insufficient_credits: { status: 402, type: 'insufficient_credits' },
  not_found: { status: 404, type: 'not_found' },
  unauthorized: { status: 401, type: 'unauthorized' },
  forbidden: { status: 403, type: 'forbidden' },
  rate_limited: { status: 503, type: 'rate_limited', lacksCapacity: true },
  deployment_not_ready: { status: 503, type: 'deployment_not_ready', lacksCapacity: true },
  deployment_stopped: { status: 503, type: 'deployment_stopped' },
  upstream_error: { status: 500, type: 'upstream_error' },
  upstream_unreachable: { status: 503, type: 'upstream_unreachable' },
  sso_required: { status: 403, type: 'sso_required' },
  forbidden_origin: { status: 403, type: 'forbidden_origin' },
  payload_too_large: { status: 400, type: 'payload_too_large' },
  invalid_body: { status: 400, type: 'invalid_prompt' },
  invalid_request: { status: 400, type: 'invalid_prompt' },
  metadata_not_supported: { status: 500, type: 'metadata_not_supported' },
  output_unavailable: { status: 404, type: 'not_found' },
  too_many_streams: { status: 503, type: 'too_many_streams' },
} as const satisfies Readonly<Record<string, ErrorRow>>;

/** Codes the table has a row for. */
type KnownCode = keyof typeof ERROR_TABLE;

/** v2's generic answer does not describe the fault, so this text does not either. */
const UPSTREAM_FAILED = 'The job service failed. Please try again.';

/**
 * Answer of `POST /prompt` when v2 refuses the job. `context` names facts that only the caller
 * knows.
 */
export function toPromptRefusal(
  error: V2Error,
  graph: Graph,
  context: MissingContext = {},
): V1Refusal {
  const { status, type } = errorRowOf(error);
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
  const ownError = {
    type,
    message: hasNodeErrors ? VALIDATION_FAILED : messageOf(error),
    details: outputNodeErrors(node_errors, context.outputs ?? []),
    extra_info: {},
  };
  return withRetryAfter({ status, body: { error: stated ?? ownError, node_errors } }, error);
}

/** Messages of the engine about a whole prompt: one server passes on its message, and not its type. */
const KNOWN_MESSAGES: readonly (readonly [RegExp, string])[] = [
  [/^Prompt has no outputs$/, 'prompt_no_outputs'],
  [/^Cannot execute because /, 'invalid_prompt'],
  [/^Node '.*' not found/, 'missing_node_type'],
  [/^No prompt provided$/, 'no_prompt'],
];

function knownMessage(error: V2Error, graph: Graph): PromptRefusal['error'] | undefined {
  const { message } = error;
  const found = KNOWN_MESSAGES.find(([text]) => text.test(message));
  if (!found) return undefined;
  const [, named] = /^Cannot execute because node (.+?) does not exist\b/.exec(message) ?? [];
  const id = Object.keys(graph).find((key) => named !== undefined && classOf(graph, key) === named);
  const details = id === undefined ? '' : `Node ID '#${id}'`;
  return { type: found[1], message, details, extra_info: {} };
}

/** The job service could not be reached, so that nothing was submitted: it may be tried again. */
export function unreachableUpstream(): V1Refusal {
  const message = 'The job service cannot be reached right now. Nothing was submitted.';
  return { ...refusal('upstream_unavailable', message), status: 502 };
}

/** This process came too late to take it. */
export function serverStalled(): V1Refusal {
  const message =
    'This server did not respond for too long. Nothing was submitted, please try again.';
  return { ...refusal('server_stalled', message), status: 503 };
}

/**
 * The outcome is unknown. A search for the job runs in the background; its result is shown under
 * `promptId`.
 */
export function submitUnknown(error: V2Error, promptId: string): V1Refusal {
  const message =
    'It is not known whether the job service took this prompt. It is looked for under the prompt id ' +
    'in extra_info; submitting again may run it twice.';
  const { status, body } = refusal('submit_outcome_unknown', message, error.code);
  const stated = { ...body.error, extra_info: { prompt_id: promptId } };
  return { status: Math.max(500, status), body: { ...body, error: stated } };
}

/**
 * Outputs without errors: v1 runs them and reports the others. A refusal that names no node applies
 * to all outputs.
 */
export function goodOutputs(nodeErrors: NodeErrors, outputs: readonly string[]): readonly string[] {
  const failed = Object.entries(nodeErrors);
  if (failed.length === 0) return [];
  const bad = new Set(failed.flatMap(([id, { dependent_outputs }]) => [id, ...dependent_outputs]));
  return outputs.filter((id) => !bad.has(id));
}

/** Refuses what is no API-format graph; the original answers 500 to most of it. */
export function refuseShape(graph: JsonObject): V1Refusal | undefined {
  if (Array.isArray(graph.nodes) || Array.isArray(graph.links)) {
    return refusal(
      'invalid_prompt',
      'This is a workflow in the UI format. Export it in API format.',
    );
  }
  const bad = Object.entries(graph).find(
    ([, node]) => !isJsonObject(node) || typeof node.class_type !== 'string',
  );
  if (!bad) return undefined;
  const message = 'Cannot execute because a node is missing the class_type property.';
  return refusal('invalid_prompt', message, `Node ID '#${bad[0]}'`);
}

const VALIDATION_FAILED = 'Prompt outputs failed validation';

function refusal(type: string, message: string, details = ''): V1Refusal {
  return {
    status: 400,
    body: { error: { type, message, details, extra_info: {} }, node_errors: {} },
  };
}

function errorRowOf(error: V2Error): ErrorRow {
  if (isAboutSubscription(error)) return { status: 429, type: 'subscription_inactive' };
  if (isKnown(error.code)) return ERROR_TABLE[error.code];
  return { status: statusOf(error.status), type: error.code };
}

const MAY_BE_ABOUT_SUBSCRIPTION: ReadonlySet<number> = new Set([402, 403, 429]);

/** By its code when that is specific, otherwise by its text. */
function isAboutSubscription({ status, code, message }: V2Error): boolean {
  if (!MAY_BE_ABOUT_SUBSCRIPTION.has(status)) return false;
  if (code === 'forbidden') return /subscription/i.test(message);
  return !isKnown(code) && /subscription/i.test(`${code} ${message}`);
}

function isKnown(code: string): code is KnownCode {
  return Object.hasOwn(ERROR_TABLE, code);
}

/** True when a submission is refused for lack of capacity, which may exist later. */
export function isCapacityRefusal({ status, code }: V2Error): boolean {
  return status === 429 && isKnown(code) && 'lacksCapacity' in ERROR_TABLE[code];
}

/** Status of a refusal with an unknown code. */
function statusOf(status: number): number {
  if (status === 429) return 503;
  if (status === 409 || status < 400) return 500;
  return status === 422 || status === 413 ? 400 : status;
}

/** The message of a refusal; it does not describe the inside of the service. */
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

/** v1 joins the errors of the output nodes themselves; a fault further up leaves the text empty. */
function outputNodeErrors(nodeErrors: NodeErrors, outputs: readonly string[]): string {
  const ownError = outputs.flatMap((id) =>
    Object.hasOwn(nodeErrors, id) ? (nodeErrors[id]?.errors ?? []) : [],
  );
  return ownError.map(({ message, details }) => `${message}: ${details}`).join('\n');
}

function withRetryAfter<T extends object>(
  answer: T,
  { retryAfterSeconds }: V2Error,
): T & { retryAfterSeconds?: number } {
  return retryAfterSeconds === undefined ? answer : { ...answer, retryAfterSeconds };
}
