import { refuseShape } from '../translate/prompt-refusal.ts';
import { partnerCredentialsOf } from '../translate/partner-credentials.ts';
import { V1Error } from '../dialects/errors.ts';
import { type Submission, createCounter, readSubmission } from '../prompts/submission.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  jsonFault,
  parseJson,
} from '../protocol/json.ts';
import { Unconvertible } from './unconvertible.ts';

/** A v1 prompt, and what of it a v2 submission has no place for. */
export type ConvertiblePrompt = Pick<Submission, 'graph' | 'partialTargets'> & {
  readonly leftOut: readonly string[];
};

const HOW_TO_EXPORT =
  'it is a workflow as the editor saves it, and v2 runs the API format: in the editor, ' +
  'Workflow > Export (API), or "Save (API Format)" of older ones';

/** Fields without a counterpart in v2, and what v2 has instead. */
const NO_V2_FIELD: Readonly<Record<string, string>> = {
  client_id: 'v2 has no sockets: follow the job by its id',
  prompt_id: 'v2 gives the job its id',
  number: 'v2 has no order of its own',
  front: 'v2 has no order of its own',
};

/** Reads a body of `POST /prompt`, or a bare graph in API format. */
export function readPrompt(text: string): ConvertiblePrompt {
  const body = parseObject(text);
  if (isEditorFormat(body)) throw new Unconvertible(HOW_TO_EXPORT);
  const isBody = isJsonObject(body.prompt) && !('class_type' in body.prompt);
  const { graph, partialTargets, extraData } = parseSubmission(isBody ? body : { prompt: body });
  if (isEditorFormat(graph)) throw new Unconvertible(HOW_TO_EXPORT);
  const shapeError = refuseShape(graph as JsonObject);
  if (shapeError) {
    const { message, details } = shapeError.body.error;
    throw new Unconvertible(`it is no workflow in API format: ${message} ${details}`.trim());
  }
  if (Object.keys(graph).length === 0) throw new Unconvertible('it has no nodes');
  return { graph, partialTargets, leftOut: isBody ? leftOut(body, extraData) : [] };
}

function parseObject(text: string): JsonObject {
  let value: Json;
  try {
    value = parseJson(text);
  } catch (cause) {
    throw new Unconvertible(`it is not JSON: ${jsonFault(cause)}`, { cause });
  }
  if (isJsonObject(value)) return value;
  throw new Unconvertible('it is neither a v1 prompt nor a workflow: both are JSON objects');
}

function parseSubmission(body: JsonObject): Submission {
  try {
    return readSubmission(body, createCounter(0));
  } catch (cause) {
    if (!(cause instanceof V1Error)) throw cause;
    throw new Unconvertible(`v1 would refuse it: ${cause.fault.message}`, { cause });
  }
}

function isEditorFormat(graph: object): boolean {
  return 'nodes' in graph && Array.isArray(graph.nodes);
}

function leftOut(body: JsonObject, extraData: JsonObject): string[] {
  const fields = Object.entries(NO_V2_FIELD).flatMap(([name, why]) =>
    name in body ? [`${name}: ${why}`] : [],
  );
  const keys = Object.keys(partnerCredentialsOf(extraData)).map(
    (name) => `extra_data.${name}: keys are not written; send it along as extra_data.${name}`,
  );
  const info =
    'extra_pnginfo' in extraData ? ['extra_data.extra_pnginfo: v2 has no field for it'] : [];
  return [...fields, ...keys, ...info];
}
