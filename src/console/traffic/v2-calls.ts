import type { JobApi, JobEvent, Result, SubmitRequest } from '../../protocol/job-api.ts';
import { jsonWeight } from '../../protocol/json-steps.ts';
import { type Json, stringifyJson } from '../../protocol/json.ts';
import { REMOVED } from '../../protocol/url-credentials.ts';
import { type CapturedBody, bodyOf } from './captured-body.ts';
import type { RecordedMessage } from './frames.ts';
import { shownPictureType } from './recorded-call.ts';

type RequestPart = { readonly request?: CapturedBody; readonly requestType?: string };
type AnswerPart = { readonly response?: CapturedBody; readonly responseType?: string };

const JSON_TYPE = 'application/json';
/**
 * A larger value is not recorded, since to write it would delay other calls: this is 2 MB of text,
 * or 32,000 values.
 */
const MAX_WEIGHT = 32_000;

/** Returns the body that a v2 call has in HTTP, without secrets. */
export function requestBody(method: keyof JobApi, args: readonly unknown[]): RequestPart {
  const body = REQUEST_BODIES[method]?.(args);
  return body === undefined ? {} : { request: jsonBody(body), requestType: JSON_TYPE };
}

const REQUEST_BODIES: { readonly [method in keyof JobApi]?: (args: readonly unknown[]) => Json } = {
  submit([request]) {
    const { workflow, metadata, extraData, idempotencyKey } = request as SubmitRequest;
    const secretNames = Object.keys(extraData);
    return {
      workflow: isLarge(workflow as Json)
        ? `(${Object.keys(workflow).length} nodes, not recorded)`
        : (workflow as Json),
      ...(secretNames.length > 0 && {
        extra_data: Object.fromEntries(secretNames.map((name) => [name, REMOVED])),
      }),
      ...(metadata && { metadata }),
      ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
    };
  },
  createAsset([upload]) {
    const { filePath, contentType, file } = upload as Parameters<JobApi['createAsset']>[1];
    return {
      file: `(${file.sizeBytes} bytes)`,
      file_path: filePath,
      content_type: contentType,
      hash: file.hash,
    };
  },
  assetFromHash: ([request]) => {
    const { hash, filePath } = request as Parameters<JobApi['assetFromHash']>[1];
    return { hash, ...(filePath !== undefined && { file_path: filePath }) };
  },
  list: ([query]) => query as Json,
};

/** Returns the body of an answer; none for a stream or a file. */
export function answerBody(method: keyof JobApi, answer: Result<unknown>): AnswerPart {
  if (!answer.ok) {
    const { code, message, details } = answer.error;
    return { response: jsonBody({ error: { code, message, details } }), responseType: JSON_TYPE };
  }
  const hasNone = method === 'events' || method === 'content' || method === 'deleteAsset';
  if (hasNone) return {};
  return { response: jsonBody(answer.value as Json), responseType: JSON_TYPE };
}

/** Returns the status that the answer has in HTTP. */
export function statusOfAnswer(method: keyof JobApi, answer: Result<unknown>): number {
  if (!answer.ok) return answer.error.status;
  if (method === 'hasBlob') return answer.value === true ? 200 : 404;
  if (method === 'deleteAsset') return 204;
  return method === 'submit' || method === 'createAsset' || method === 'assetFromHash' ? 201 : 200;
}

function jsonBody(value: Json): CapturedBody {
  return bodyOf(Buffer.from(stringifyJson(isLarge(value) ? '(large, not recorded)' : value)));
}

function isLarge(value: Json): boolean {
  return jsonWeight(value, MAX_WEIGHT) > MAX_WEIGHT;
}

/** Returns the entry of an event; for a preview, with its picture. */
export function eventEntry(event: JobEvent): RecordedMessage {
  if (event.event === 'preview') {
    const { bytes, content_type: type, node_id: node } = event.data;
    return {
      type: 'preview',
      text: `node ${node}`,
      bytes: bytes.length,
      ...shownPictureType(type),
      body: bodyOf(Buffer.from(bytes)),
      bodyType: type,
    };
  }
  const body = jsonBody(event.data as unknown as Json);
  return {
    type: event.event,
    text: eventText(event),
    bytes: body.totalBytes,
    body,
    bodyType: JSON_TYPE,
  };
}

function eventText(event: Exclude<JobEvent, { event: 'preview' }>): string {
  switch (event.event) {
    case 'status':
      return event.data.status;
    case 'progress': {
      const { value, current_node: node, step, steps } = event.data;
      const at = steps === null || steps === undefined ? '' : ` · ${step} of ${steps}`;
      return `${Math.round(value * 100)} %${node === null || node === undefined ? '' : ` · node ${node}`}${at}`;
    }
    case 'output':
      return `node ${event.data.node_id} · ${event.data.name}`;
    case 'x_node':
      return `node ${event.data.node_id} ${event.data.phase}`;
    case 'x_text':
      return `node ${event.data.node_id} · ${event.data.text}`;
  }
}
