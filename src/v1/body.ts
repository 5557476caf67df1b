import type Koa from 'koa';
import { readBodyText } from '../body.ts';
import { type Json, jsonFault, parseJson } from '../wire/json.ts';
import { V1Error, plainError } from './errors.ts';

/** What kind of refusal a status of the body reader is, in a word. */
const CODES = {
  400: 'invalid_json',
  413: 'payload_too_large',
  415: 'unsupported_encoding',
} as const;

/** Reads a body as JSON whatever its content type says; v1 clients label it as anything. */
export async function readJson(ctx: Koa.Context, maxBytes: number): Promise<Json> {
  const text = await readText(ctx, maxBytes);
  try {
    return parseJson(text);
  } catch (cause) {
    const message = `The body is not JSON: ${jsonFault(cause)}`;
    throw new V1Error(400, plainError('invalid_json', message), { cause });
  }
}

/** Reads a body as UTF-8 text within the limit. */
export async function readText(ctx: Koa.Context, maxBytes: number): Promise<string> {
  const read = await readBodyText(ctx.req, { maxBytes });
  if (read.ok) return read.value;
  const { status, message } = read;
  // v1 says a 413 in plain text; the rest of the body is not worth reading.
  const body = status === 413 ? message : plainError(CODES[status], message);
  throw new V1Error(status, body, { headers: { Connection: 'close' } });
}
