import { hasControlCharacter } from '../protocol/control-characters.ts';
import { type Result, type SubmitRequest, ok, refuse } from '../protocol/job-api.ts';
import {
  type Json,
  type JsonObject,
  LosslessNumber,
  isGiven,
  isJsonObject,
} from '../protocol/json.ts';
import type { Graph } from '../protocol/v2.ts';
import { longCredentialFault } from '../translate/partner-credentials.ts';
import { badField } from './reply.ts';

/** The keys of `extra_data` that the contract allows, and the internal name of each. */
const EXTRA_DATA: { readonly [name: string]: keyof SubmitRequest['extraData'] } = {
  api_key_comfy_org: 'api_key_comfy_org',
  auth_token_comfy_org: 'auth_token_comfy_org',
  api_key_service_org: 'api_key_comfy_org',
};

/**
 * Fields that the contract reserves. They are refused: to accept them without an effect would
 * deceive the caller.
 */
const RESERVED = ['webhook_url', 'inputs'];

const MAX_LABELS = 16;
const MAX_LABEL_CHARS = 1024;
const LABEL_NAME = /^[A-Za-z0-9_.-]{1,40}$/;
/** Characters that change the direction of the surrounding text. */
const DIRECTION_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/u;

/** Reads the body of `POST /jobs`. */
export function readJobSubmission(
  body: JsonObject,
  idempotencyKey: string | undefined,
): Result<SubmitRequest> {
  const reserved = RESERVED.find((name) => isGiven(body[name]));
  if (reserved !== undefined)
    return refuse(422, 'invalid_workflow', `"${reserved}" is reserved and not supported yet.`);
  const { workflow } = body;
  if (!isJsonObject(workflow)) {
    return refuse(
      422,
      'invalid_workflow',
      '"workflow" must be an object: a graph in API format, node id to node.',
    );
  }
  const extraData = readExtraData(body['extra_data']);
  if (!extraData.ok) return extraData;
  const metadata = readMetadata(body['metadata']);
  if (!metadata.ok) return metadata;
  const order = readOrder(body['x_order']);
  if (!order.ok) return order;
  return ok({
    // Validation checks every node later; here the workflow is only known to be an object.
    workflow: workflow as Graph,
    extraData: extraData.value,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
    ...(metadata.value && { metadata: metadata.value }),
    ...(order.value !== undefined && { order: order.value }),
    ...readProvenance(body, workflow),
  });
}

/** True when this may be the label of a job, or a search for one. */
export function isLabel(name: string, value: string): boolean {
  return (
    LABEL_NAME.test(name) &&
    value.length <= MAX_LABEL_CHARS &&
    !DIRECTION_CONTROLS.test(value) &&
    !hasControlCharacter(value)
  );
}

function readExtraData(value: Json | undefined): Result<SubmitRequest['extraData']> {
  if (!isGiven(value)) return ok({});
  if (!isJsonObject(value)) return badField('"extra_data" must be an object.');
  const fault = longCredentialFault(value);
  if (fault !== undefined) return badField(fault);
  const read: { -readonly [name in keyof SubmitRequest['extraData']]: string } = {};
  for (const [name, secret] of Object.entries(value)) {
    const field = Object.hasOwn(EXTRA_DATA, name) ? EXTRA_DATA[name] : undefined;
    if (field === undefined) return badField(`"extra_data" has no field "${name.slice(0, 100)}".`);
    if (!isGiven(secret)) continue;
    if (typeof secret !== 'string') return badField(`"extra_data.${name}" must be a string.`);
    read[field] = secret;
  }
  return ok(read);
}

function readMetadata(value: Json | undefined): Result<SubmitRequest['metadata']> {
  if (!isGiven(value)) return ok(undefined);
  const fits = ([name, text]: [string, Json]): boolean =>
    typeof text === 'string' && isLabel(name, text);
  const mayFit = isJsonObject(value) && Object.keys(value).length <= MAX_LABELS;
  if (mayFit && Object.entries(value).every(fits)) {
    return ok(value as { readonly [name: string]: string });
  }
  const rule =
    `"metadata" takes up to ${MAX_LABELS} labels: names of 1 to 40 characters out of A-Z a-z 0-9 _ . -, ` +
    `values that are strings of up to ${MAX_LABEL_CHARS} printable characters.`;
  return refuse(422, 'metadata_invalid', rule);
}

function readOrder(value: Json | undefined): Result<number | undefined> {
  if (!isGiven(value)) return ok(undefined);
  const isNumber = typeof value === 'number' || value instanceof LosslessNumber;
  const order = isNumber ? Number(value.toString()) : Number.NaN;
  return Number.isFinite(order) ? ok(order) : badField('"x_order" must be a number.');
}

function readProvenance(body: JsonObject, workflow: JsonObject): Pick<SubmitRequest, 'provenance'> {
  const { x_prompt: prompt, x_extra_pnginfo: extraPngInfo } = body;
  if (!isGiven(prompt) && !isGiven(extraPngInfo)) return {};
  return { provenance: { prompt: prompt ?? workflow, extraPngInfo: extraPngInfo ?? null } };
}
