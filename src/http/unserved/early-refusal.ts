import type { IncomingMessage } from 'node:http';
import { type Dialect, rulesOf } from '../../dialects/dialect.ts';
import { type ErrorReply, errorReply } from '../../dialects/error-reply.ts';
import { faultOf } from '../../dialects/errors.ts';

/** The known facts about a call that no handler sees. */
export type UnservedCall = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** Returns the dialect of a v1 call by its form. */
export type DialectOf = (call: UnservedCall) => Dialect;

type Refusal = { readonly status: number; readonly message: string };

/**
 * Returns the answer to a call that no handler sees, in the form of its API. v1's own server sends
 * no body here, so local clients get none.
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
