import { type Json, type JsonObject, LosslessNumber, isJsonObject } from '../protocol/json.ts';
import { hasControlCharacter, hasHalfCharacter } from '../protocol/control-characters.ts';
import type { Graph } from '../protocol/v2.ts';
import type { DialectRules } from '../dialects/dialect.ts';
import { V1Error, promptFault, plainError } from '../dialects/errors.ts';
import { promptRefusal } from '../protocol/node-errors.ts';
import { isTruthyInPython, readPythonFloat } from '../protocol/python-text.ts';
import { longCredentialFault } from '../translate/partner-credentials.ts';

/** The content of a `POST /prompt` body, in v1's words, checked for its shape. */
export type Submission = {
  readonly graph: Graph;
  /** Kept as the client sent it, secrets included; `null` counts as `{}`. */
  readonly extraData: JsonObject;
  readonly clientId: string | null;
  /** The id that the caller chose. `undefined`: the prompt gets the id of its v2 job. */
  readonly promptId: string | undefined;
  readonly number: number;
  readonly partialTargets: readonly string[] | undefined;
  /** The meaning of a folder in a file name. Absent: a folder. */
  readonly subfolder?: DialectRules['subfolder'];
};

/**
 * v1's priority counter, which several processes may share. Every `POST` without a `number` takes a
 * number, also when it is refused.
 */
export type SharedCounter = { next(): number | Promise<number> };

const MAX_ID_CHARS = 200;
const MAX_CLIENT_ID_CHARS = 128;

/** True when this body takes a number from the counter. */
export function usesCounter(body: Json): boolean {
  // v1 looks for `number` in a list or a text too, does not find it, and takes one from the
  // counter.
  if (!isJsonObject(body)) return Array.isArray(body) || typeof body === 'string';
  return !('number' in body);
}

/**
 * Reads a body. `count`: the number from the counter, if the body takes one. `usageSource`: the
 * `Comfy-Usage-Source` header, which v1 hands to nodes.
 */
export function readSubmission(body: Json, count: number, usageSource = ''): Submission {
  if (!isJsonObject(body)) throw noPromptError();
  const number = readNumber(body, count);
  if (!('prompt' in body)) throw noPromptError();
  const clientId = readClientId(body.client_id);
  const extraData = readExtraData(body.extra_data);
  return {
    graph: readGraph(body.prompt),
    extraData: {
      ...extraData,
      ...(clientId !== null && { client_id: clientId }),
      ...(usageSource &&
        !('comfy_usage_source' in extraData) && { comfy_usage_source: usageSource }),
    },
    clientId: clientId ?? readClientId(extraData.client_id),
    promptId: readPromptId(body.prompt_id),
    number,
    partialTargets: readTargets(body.partial_execution_targets),
  };
}

/**
 * Returns the priority. `number` wins and leaves the counter alone; `front` runs before everything
 * queued so far.
 */
function readNumber(body: JsonObject, count: number): number {
  if ('number' in body) return parseNumber(body.number);
  return isTruthyInPython(body.front) && count !== 0 ? -count : count;
}

function parseNumber(value: Json | undefined): number {
  const given = typeof value === 'boolean' ? Number(value) : value;
  const isNumber = typeof given !== 'object' || given instanceof LosslessNumber;
  const number = isNumber ? readPythonFloat(String(given)) : undefined;
  if (number === undefined || !Number.isFinite(number)) {
    throw badRequest('invalid_prompt', '"number" must be a finite number.');
  }
  return number;
}

/** Reads the id as v1 does: any value but null becomes a string. */
function readPromptId(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  const id = toPythonText(value);
  if (id === undefined || id.length > MAX_ID_CHARS || /[/\\]/.test(id) || isUnprintable(id)) {
    throw badRequest(
      'invalid_prompt_id',
      `"prompt_id" must be a text of at most ${MAX_ID_CHARS} printable characters without slashes.`,
    );
  }
  return id;
}

/**
 * Reads the client id. An empty one is a client id; only an absent one means every socket of the
 * user.
 */
function readClientId(value: Json | undefined): string | null {
  if (value === undefined || value === null) return null;
  const id = toPythonText(value);
  if (id === undefined || id.length > MAX_CLIENT_ID_CHARS || isUnprintable(id)) {
    throw badRequest(
      'invalid_client_id',
      `"client_id" must be a text of at most ${MAX_CLIENT_ID_CHARS} printable characters.`,
    );
  }
  return id;
}

function isUnprintable(id: string): boolean {
  return hasControlCharacter(id) || hasHalfCharacter(id);
}

/**
 * Reads the extra data. `null` counts as absent, though the original fails on it; a list is
 * refused.
 */
function readExtraData(value: Json | undefined): JsonObject {
  if (value === undefined || value === null) return {};
  if (!isJsonObject(value)) throw badRequest('invalid_prompt', '"extra_data" must be an object.');
  const fault = longCredentialFault(value);
  if (fault !== undefined) throw badRequest('credential_too_long', fault);
  return value;
}

function readGraph(value: Json | undefined): Graph {
  if (isJsonObject(value)) return value as Graph;
  if (value === '' || (Array.isArray(value) && value.length === 0)) {
    throw badRequest('prompt_no_outputs', 'Prompt has no outputs');
  }
  throw badRequest(
    'invalid_prompt',
    '"prompt" must be an object: node id to node, as exported in API format.',
  );
}

/**
 * Reads the targets. v1 compares each one with the ids, which are strings: another type names no
 * node.
 */
function readTargets(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value))
    throw badRequest('invalid_prompt', '"partial_execution_targets" must be a list of node ids.');
  return value.filter((id) => typeof id === 'string').map(checkTarget);
}

function checkTarget(id: string): string {
  if (!hasControlCharacter(id)) return id;
  throw badRequest('invalid_prompt', '"partial_execution_targets" has a control character.');
}

function toPythonText(value: NonNullable<Json>): string | undefined {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'object' && !(value instanceof LosslessNumber)) return undefined;
  return String(value);
}

function noPromptError(): V1Error {
  const refusal = promptRefusal('no_prompt', 'No prompt provided', 'No prompt provided');
  return new V1Error(400, promptFault(refusal));
}

function badRequest(type: string, message: string): V1Error {
  return new V1Error(400, plainError(type, message));
}
