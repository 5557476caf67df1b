import type { IncomingMessage } from 'node:http';
import { type Dialect, rulesOf } from '../../dialects/dialect.ts';
import { type ErrorReply, errorReply } from '../../dialects/error-reply.ts';
import { faultOf } from '../../dialects/errors.ts';

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
): ErrorReply {
  const { method = '', url = '' } = call;
  const fault = faultOf(status, undefined, message);
  return errorReply({ status, fault }, { method, url, rules: rulesOf(dialectOf(call)) });
}
