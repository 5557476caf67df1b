import type { IncomingMessage } from 'node:http';
import { type Dialect, rulesOf } from '../../dialects/dialect.ts';
import { type ErrorReply, errorReply } from '../../dialects/error-reply.ts';
import { faultOf, plainError } from '../../dialects/errors.ts';

/** The known facts about a call that no handler sees. */
export type UnservedCall = Pick<IncomingMessage, 'method' | 'url' | 'headers'>;

/** Returns the dialect of a v1 call by its form. */
export type DialectOf = (call: UnservedCall) => Dialect;

/** Why a call reaches no handler. */
export type Refusal = { readonly status: number; readonly message: string };

/**
 * Returns the answer to a call that no handler sees, in the form of its API. v1's own server sends
 * no body here, so local clients get none, but for a limit that v1 does not have.
 */
export function earlyRefusal(
  call: UnservedCall,
  { status, message }: Refusal,
  dialectOf: DialectOf,
): ErrorReply {
  const { method = '', url = '' } = call;
  const plain = faultOf(status, undefined, message);
  const fault = status === 431 ? plainError(plain.code, message) : plain;
  return errorReply({ status, fault }, { method, url, rules: rulesOf(dialectOf(call)) });
}
