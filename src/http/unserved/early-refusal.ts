import type { IncomingMessage } from 'node:http';
import { type Dialect, rulesOf } from '../../dialects/dialect.ts';
import { errorBody } from '../../dialects/error-reply.ts';
import { faultOf } from '../../dialects/errors.ts';
import { stringifyJson } from '../../protocol/json.ts';
import { toPythonText } from '../../protocol/python-json-text.ts';
import { routerRefusal } from '../../dialects/router-refusal.ts';

/** A call that no handler sees, as far as it is known. */
export type UnservedCall = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** The dialect of a v1 call, by its form. */
export type DialectOf = (call: UnservedCall) => Dialect;

type Refusal = { readonly status: number; readonly message: string };

/**
 * The answer to a call that no handler sees, in the form of its API. v1's own server has nothing to say
 * to it, so local clients get no body.
 */
export function earlyRefusal(
  call: UnservedCall,
  { status, message }: Refusal,
  dialectOf: DialectOf,
): { readonly headers: { readonly [name: string]: string }; readonly body: string } {
  const { method = '', url = '' } = call;
  const { headers, body } =
    routerRefusal(url, status, message) ??
    replyFor({ method, url, rules: rulesOf(dialectOf(call)) }, { status, message });
  const length = { 'Content-Length': String(Buffer.byteLength(body)) };
  return { headers: { ...length, ...headers }, body: method === 'HEAD' ? '' : body };
}

function replyFor(call: Parameters<typeof errorBody>[1], { status, message }: Refusal) {
  const body = errorBody(faultOf(status, undefined, message), call);
  if (body === undefined) return { headers: {}, body: '' };
  const isText = typeof body === 'string';
  const type = isText ? 'text/plain' : 'application/json';
  const headers = { 'Content-Type': `${type}; charset=utf-8` };
  return { headers, body: isText ? body : toPythonText(stringifyJson(body)) };
}
