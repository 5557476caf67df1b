import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isCopyCurrent } from '../http/file-headers.ts';
import { type JsonObject, stringifyJson } from '../protocol/json.ts';
import { type ModelDef, modelId } from './model-def.ts';
import type { RouterReply } from './reply.ts';

/** The input schema of a model without one: any JSON object. */
const OPEN_INPUT: JsonObject = { type: 'object', additionalProperties: true };

const ERROR_SCHEMA: JsonObject = {
  type: 'object',
  required: ['detail', 'error_type'],
  properties: { detail: { type: 'string' }, error_type: { type: 'string' } },
};

const INVALID_SCHEMA: JsonObject = {
  type: 'object',
  required: ['detail'],
  properties: {
    detail: {
      type: 'array',
      items: {
        type: 'object',
        required: ['loc', 'msg', 'type'],
        properties: {
          loc: { type: 'array', items: { type: ['string', 'integer'] } },
          msg: { type: 'string' },
          type: { type: 'string' },
          ctx: { type: 'object' },
          input: {},
        },
      },
    },
  },
};

/** Returns a model's schema document, or a 304 when the caller has it. */
export function replyDocument(def: ModelDef, request: IncomingMessage): RouterReply {
  const body = Buffer.from(stringifyJson(openApi(def)));
  const etag = `"${createHash('sha256').update(body).digest('hex')}"`;
  const headers = { ETag: etag, 'Cache-Control': 'private, must-revalidate' };
  if (isCopyCurrent(request, { etag })) return { status: 304, headers };
  return { status: 200, headers, contentType: 'application/json', body };
}

function openApi(def: ModelDef): JsonObject {
  return {
    openapi: '3.1.0',
    info: { title: def.title, version: '1', description: def.description },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    paths: { [`/v1/models/${modelId(def)}`]: { post: operation(def) } },
    components: {
      schemas: { Input: def.input ?? OPEN_INPUT, Error: ERROR_SCHEMA, Invalid: INVALID_SCHEMA },
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
    security: [{ key: [] }, { bearer: [] }],
    ...(def.input === undefined && { 'x-comfy-input-schema-authored': false }),
  };
}

function operation(def: ModelDef): JsonObject {
  const output = Object.entries(def.output).map(([type, schema]) => [type, { schema }]);
  return {
    operationId: 'run',
    summary: def.title,
    parameters: [
      { name: 'Idempotency-Key', in: 'header', schema: { type: 'string', maxLength: 255 } },
    ],
    requestBody: { required: true, content: jsonOf('Input') },
    responses: {
      200: { description: 'What the model made.', content: Object.fromEntries(output) },
      422: { description: 'The input does not fit; nothing ran.', content: jsonOf('Invalid') },
      default: { description: 'Any other error.', content: jsonOf('Error') },
    },
  };
}

/** A JSON body with a schema of the document. */
function jsonOf(name: 'Input' | 'Invalid' | 'Error'): JsonObject {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } };
}
