import type { BodyReader, HttpExchange } from '../http/json-body.ts';
import type { Json } from '../protocol/json.ts';
import type { ModelLimits } from './limits.ts';
import { type ReplyError, replyError } from './reply.ts';

/** A request body, as text and as JSON, or the reason for its refusal. */
type Input =
  | { readonly ok: true; readonly text: string; readonly body: Json; release(): void }
  | { readonly ok: false; readonly refusal: ReplyError };

export type ReadInput = (exchange: HttpExchange) => Promise<Input>;

/** Reads bodies, within the memory that is reserved for those of all callers. */
export function createReadInput(
  bodies: BodyReader,
  limits: Pick<ModelLimits, 'maxInputBytes' | 'inputBudgetBytes'>,
): ReadInput {
  let heldBytes = 0;
  return async (exchange) => {
    const declared = Number(exchange.req.headers['content-length'] ?? limits.maxInputBytes);
    let bytes = Math.min(declared, limits.maxInputBytes);
    if (heldBytes + bytes > limits.inputBudgetBytes) {
      return refuse(replyError('service_unavailable', 'Too many inputs are being worked on.'));
    }
    heldBytes += bytes;
    const release = (): void => void (heldBytes -= bytes);
    const input = await read(bodies, exchange, limits.maxInputBytes).finally(release);
    if (!input.ok) return input;
    // A body without a declared length was counted with the maximum.
    bytes = Math.min(bytes, Buffer.byteLength(input.text));
    heldBytes += bytes;
    return { ...input, release };
  };
}

async function read(
  bodies: BodyReader,
  exchange: HttpExchange,
  maxBytes: number,
): Promise<Omit<Input & { ok: true }, 'release'> | (Input & { ok: false })> {
  const read = await bodies.read(exchange, { maxBytes, withText: true });
  if (read.ok) return { ok: true, text: read.text ?? '', body: read.value };
  const { status, message, isSyntax, retryAfterSeconds } = read;
  if (status === 503) {
    const headers = { Connection: 'close', 'Retry-After': String(retryAfterSeconds) };
    return refuse(replyError('service_unavailable', message, { headers }));
  }
  // The rest of a refused body is not read.
  const headers = isSyntax ? {} : { Connection: 'close' };
  return refuse(replyError('invalid_input', message, { status, headers }));
}

function refuse(refusal: ReplyError): { readonly ok: false; readonly refusal: ReplyError } {
  return { ok: false, refusal };
}
