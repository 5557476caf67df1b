import type { BodyReader, HttpExchange } from '../http/json-body.ts';
import type { Json } from '../protocol/json.ts';
import { type ReplyError, replyError } from './reply.ts';

/** A request body, as text and as JSON, or the reason for its refusal. */
type Input =
  | { readonly ok: true; readonly text: string; readonly body: Json }
  | { readonly ok: false; readonly refusal: ReplyError };

/** Reads the body of a call. */
export async function readInput(
  bodies: BodyReader,
  exchange: HttpExchange,
  maxBytes: number,
): Promise<Input> {
  const read = await bodies.read(exchange, { maxBytes, withText: true });
  if (read.ok) return { ok: true, text: read.text ?? '', body: read.value };
  const { status, message, isSyntax, retryAfterSeconds } = read;
  if (status === 503) {
    const headers = { Connection: 'close', 'Retry-After': String(retryAfterSeconds) };
    return { ok: false, refusal: replyError('service_unavailable', message, { headers }) };
  }
  // The rest of a refused body is not read.
  const headers = isSyntax ? {} : { Connection: 'close' };
  return { ok: false, refusal: replyError('invalid_input', message, { status, headers }) };
}
