import type Koa from 'koa';
import type { BodyReader, BodyRefusal } from '../http/json-body.ts';
import type { Json } from '../wire/json.ts';
import { V1Error, plainError } from './errors.ts';

/** What kind of refusal a status of the body reader is, in a word. */
const CODES = {
  400: 'invalid_json',
  413: 'payload_too_large',
  415: 'unsupported_encoding',
  503: 'server_busy',
} as const satisfies Record<BodyRefusal['status'], string>;

/** Reads a body as JSON whatever its content type says; v1 clients label it as anything. */
export async function readJson(
  ctx: Koa.Context,
  bodies: BodyReader,
  graphMember?: string,
): Promise<Json> {
  const read = await bodies.read(ctx, graphMember === undefined ? {} : { graphMember });
  if (read.ok) return read.value;
  throw refusedBody(read);
}

/** The same, but a text that is no JSON is `undefined`. */
export async function readJsonIfAny(
  ctx: Koa.Context,
  bodies: BodyReader,
): Promise<Json | undefined> {
  const read = await bodies.read(ctx);
  if (read.ok) return read.value;
  if (read.isSyntax) return undefined;
  throw refusedBody(read);
}

function refusedBody({ status, message, isSyntax, retryAfterSeconds }: BodyRefusal): V1Error {
  // v1 says a 413 in plain text.
  const body = status === 413 ? message : plainError(CODES[status], message);
  const retry = retryAfterSeconds === undefined ? {} : { 'Retry-After': `${retryAfterSeconds}` };
  // Of all but bad JSON the rest of the body is not worth reading.
  const headers = isSyntax ? retry : { ...retry, Connection: 'close' };
  return new V1Error(status, body, { headers });
}
