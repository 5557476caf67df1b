import type { IncomingMessage } from 'node:http';
import { readBodyText } from '../body.ts';
import { type Json, jsonFault, parseJson } from '../wire/json.ts';
import type { ModelLimits } from './limits.ts';
import { type ReplyError, replyError } from './reply.ts';

/** A request body, as sent and as JSON, or why it was not taken. */
export type Input =
  | { readonly ok: true; readonly text: string; readonly body: Json; done(): void }
  | { readonly ok: false; readonly refusal: ReplyError };

export type ReadInput = (request: IncomingMessage) => Promise<Input>;

/** Reads bodies, of all callers together no more than memory is set aside for. */
export function createReadInput(
  limits: Pick<ModelLimits, 'maxInputBytes' | 'inputBudgetBytes'>,
): ReadInput {
  let heldBytes = 0;
  return async (request) => {
    const declared = Number(request.headers['content-length'] ?? limits.maxInputBytes);
    let bytes = Math.min(declared, limits.maxInputBytes);
    if (heldBytes + bytes > limits.inputBudgetBytes) {
      return refuse(replyError('service_unavailable', 'Too many inputs are being worked on.'));
    }
    heldBytes += bytes;
    const done = (): void => void (heldBytes -= bytes);
    const input = await read(request, limits.maxInputBytes);
    done();
    if (!input.ok) return input;
    // A length nobody declared was taken for the longest.
    bytes = Math.min(bytes, input.text.length);
    heldBytes += bytes;
    return { ...input, done };
  };
}

async function read(
  request: IncomingMessage,
  maxBytes: number,
): Promise<Omit<Input & { ok: true }, 'done'> | (Input & { ok: false })> {
  const read = await readBodyText(request, { maxBytes });
  if (!read.ok) {
    const { status, message } = read;
    // The rest of a refused body is not read.
    const headers = status === 413 ? { Connection: 'close' } : {};
    return refuse(replyError('invalid_input', message, { status, headers }));
  }
  try {
    return { ok: true, text: read.value, body: parseJson(read.value) };
  } catch (error) {
    return refuse(replyError('invalid_input', `The body is not JSON: ${jsonFault(error)}`));
  }
}

function refuse(refusal: ReplyError): { readonly ok: false; readonly refusal: ReplyError } {
  return { ok: false, refusal };
}
