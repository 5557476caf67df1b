import type { V2Error } from '../wire/jobs.ts';
import { V1Error } from './errors.ts';

/**
 * A v2 refusal about a file as v1 clients understand it: what is gone is an empty 404, v2's own
 * 422 is a 400, the rest keeps its status and says why.
 */
export function relayRefusal(error: V2Error): V1Error {
  const { status, message, retryAfterSeconds } = error;
  if (status === 404 || status === 410) return new V1Error(404);
  const wait = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  return new V1Error(status === 422 ? 400 : status, message, { headers: wait });
}
