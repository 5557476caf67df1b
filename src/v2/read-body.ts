import type Koa from 'koa';
import type { BodyReader } from '../http/json-body.ts';
import type { BodyRefusal } from '../http/unpacked-body.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import type { V2ErrorCode } from '../protocol/error-codes.ts';
import { type Result, ok, refuse } from '../protocol/job-api.ts';
import { type JsonObject, isJsonObject } from '../protocol/json.ts';
import { badField } from './reply.ts';

/** Status and code for a body that cannot be read; the contract has 422 for malformed bodies. */
const BODY_REFUSALS = {
  400: [422, 'invalid_request'],
  413: [413, 'payload_too_large'],
  415: [415, 'unsupported_media_type'],
  503: [503, 'server_busy'],
  507: [507, 'insufficient_storage'],
} as const satisfies Record<BodyRefusal['status'], readonly [number, V2ErrorCode]>;

const MAX_KEY_CHARS = 255;

/** Reads a JSON object, whatever its content type is, and keeps all digits of its numbers. */
export async function readObject(
  ctx: Koa.Context,
  bodies: BodyReader,
  graphMember?: string,
): Promise<Result<JsonObject>> {
  const read = await bodies.read(ctx, graphMember === undefined ? {} : { graphMember });
  if (!read.ok) {
    // The rest of the body is read after bad JSON only.
    if (!read.isSyntax) ctx.set('Connection', 'close');
    return refuseBody(read);
  }
  return isJsonObject(read.value) ? ok(read.value) : badField('The body must be a JSON object.');
}

/** Returns a refused body as a v2 error. */
export function refuseBody<T>({ status, message, retryAfterSeconds }: BodyRefusal): Result<T> {
  const retry = retryAfterSeconds === undefined ? {} : { retryAfterSeconds };
  const [replyStatus, code] = BODY_REFUSALS[status];
  return refuse(replyStatus, code, message, retry);
}

/** Refuses a field for a control character in its value. */
export function refuseControlCharacter<T>(field: string): Result<T> {
  return badField(`"${field}" has a control character.`);
}

/** Reads the `Idempotency-Key` header, if there is one. */
export function readIdempotencyKey(ctx: Koa.Context): Result<{ readonly idempotencyKey?: string }> {
  const key = ctx.req.headers['idempotency-key'];
  if (key === undefined) return ok({});
  if (typeof key === 'string' && hasControlCharacter(key))
    return refuseControlCharacter('Idempotency-Key');
  if (typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_CHARS) {
    return ok({ idempotencyKey: key });
  }
  return badField(`Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters.`);
}
