import { type Json, type JsonObject, isJsonObject } from '../wire/json.ts';
import type { V2Error } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import type { NodeErrorEntry, NodeErrors, PromptRefusal } from '../wire/v1.ts';

/** A v1 answer to a v2 refusal. */
export type V1Refusal = {
  readonly status: number;
  readonly body: PromptRefusal;
  readonly retryAfterSeconds?: number;
};

/** v2 error code → v1 status and `error.type` of `POST /prompt`; the contract's order, then others seen. */
const PROMPT_ERROR: { readonly [code: string]: { readonly status: number; readonly type: string } } = {
  invalid_workflow: { status: 400, type: 'prompt_outputs_failed_validation' },
  workflow_format_ui: { status: 400, type: 'invalid_prompt' },
  missing_asset: { status: 400, type: 'prompt_outputs_failed_validation' },
  // The v1 caller did nothing wrong: the key is ours.
  idempotency_key_reuse: { status: 500, type: 'outcome_unknown' },
  // v1 clients read a 429 as "subscription inactive".
  queue_full: { status: 503, type: 'queue_full' },
  insufficient_credits: { status: 402, type: 'insufficient_credits' },
  not_found: { status: 404, type: 'not_found' },
  unauthorized: { status: 401, type: 'unauthorized' },
  forbidden: { status: 403, type: 'forbidden' },
  rate_limited: { status: 503, type: 'rate_limited' },
  deployment_not_ready: { status: 503, type: 'deployment_not_ready' },
  deployment_stopped: { status: 503, type: 'deployment_stopped' },
  upstream_error: { status: 500, type: 'upstream_error' },
  payload_too_large: { status: 400, type: 'payload_too_large' },
};

/** v2 `reason` of a node error → v1's type; an unknown reason is a custom refusal in its own words. */
const REASON_TYPE: { readonly [reason: string]: string } = {
  missing_input: 'required_input_missing',
  required_input_missing: 'required_input_missing',
  value_not_in_list: 'value_not_in_list',
  invalid_value: 'invalid_input_type',
  invalid_type: 'invalid_input_type',
  type_mismatch: 'return_type_mismatch',
};

/** What `POST /prompt` answers when v2 refuses the job. */
export function toPromptRefusal(error: V2Error, graph: Graph): V1Refusal {
  const row = PROMPT_ERROR[error.code] ?? { status: fallbackStatus(error.status), type: error.code };
  const details = isJsonObject(error.details) ? error.details : {};
  const own = isJsonObject(details.error) ? details.error : undefined;
  const body: PromptRefusal = {
    error: {
      type: text(own?.type) ?? row.type,
      message: text(own?.message) ?? error.message,
      details: text(own?.details) ?? '',
      extra_info: isJsonObject(own?.extra_info) ? own.extra_info : {},
    },
    node_errors: toNodeErrors(details.node_errors, graph),
  };
  const { retryAfterSeconds } = error;
  return { status: row.status, body, ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }) };
}

/** Outputs of the graph that no error stands in the way of; a partly good graph runs them. */
export function goodOutputs(nodeErrors: NodeErrors, outputs: readonly string[]): readonly string[] {
  const bad = new Set(Object.values(nodeErrors).flatMap((node) => node.dependent_outputs));
  return outputs.filter((id) => !bad.has(id));
}

/** v2 knows two shapes: v1's own, passed through, and lists of `{field, reason}`. */
function toNodeErrors(value: Json | undefined, graph: Graph): NodeErrors {
  if (!isJsonObject(value)) return {};
  const entries = Object.entries(value).map(([id, node]) => [id, toNodeError(node, graph[id]?.class_type ?? '')]);
  return Object.fromEntries(entries) as NodeErrors;
}

function toNodeError(value: Json, classType: string): Json {
  if (isJsonObject(value) && Array.isArray(value.errors)) return value;
  const entries = Array.isArray(value) ? value.filter(isJsonObject) : [];
  return {
    errors: entries.map(toEntry) as unknown as Json,
    dependent_outputs: [],
    class_type: classType,
  };
}

function toEntry(entry: JsonObject): NodeErrorEntry {
  const field = text(entry.field) ?? '';
  const reason = text(entry.reason) ?? 'refused';
  return {
    type: REASON_TYPE[reason] ?? 'custom_validation_failed',
    message: reason,
    details: field,
    extra_info: field === '' ? {} : { input_name: field },
  };
}

function fallbackStatus(status: number): number {
  if (status === 429) return 503;
  return status === 422 ? 400 : status;
}

function text(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
