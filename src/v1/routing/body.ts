import type Koa from 'koa';
import type { BodyReader, BodyRefusal } from '../../http/json-body.ts';
import type { Json } from '../../protocol/json.ts';
import { V1Error, plainError } from '../../dialects/errors.ts';

/** The error code for each status of the body reader. */
const ERROR_CODES = {
  400: 'invalid_json',
  413: 'payload_too_large',
  415: 'unsupported_encoding',
  503: 'server_busy',
} as const satisfies Record<BodyRefusal['status'], string>;

/** Reads a body as JSON whatever its content type says; v1 clients label it as anything. */
export async function readJson(
  ctx: Koa.Context,
  bodyReader: BodyReader,
  graphMember?: string,
): Promise<Json> {
  const result = await bodyReader.read(ctx, graphMember === undefined ? {} : { graphMember });
  if (result.ok) return result.value;
  throw bodyError(result);
}

/** The same, but a text that is no JSON is `undefined`. */
export async function readJsonOrUndefined(
  ctx: Koa.Context,
  bodyReader: BodyReader,
): Promise<Json | undefined> {
  const result = await bodyReader.read(ctx);
  if (result.ok) return result.value;
  if (result.isSyntax) return undefined;
  throw bodyError(result);
}

function bodyError({ status, message, isSyntax, retryAfterSeconds }: BodyRefusal): V1Error {
  // v1 says a 413 in plain text.
  const body = status === 413 ? message : plainError(ERROR_CODES[status], message);
  const retryHeaders =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': `${retryAfterSeconds}` };
  // Only after bad JSON the rest of the body is read; all other refusals close the connection.
  const headers = isSyntax ? retryHeaders : { ...retryHeaders, Connection: 'close' };
  return new V1Error(status, body, { headers });
}
