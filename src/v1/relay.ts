import { type V2Error, isGone } from '../wire/jobs.ts';
import { messageOf } from '../translate/errors.ts';
import { V1Error, emptyError, plainError } from './errors.ts';

/** Refusals whose own status would blame the client, or mean something else to it. */
const SHOWN_AS: { readonly [code: string]: number } = {
  upstream_unreachable: 502,
  bad_upstream_response: 502,
  /** The bytes were damaged between us and the upstream, twice. */
  hash_mismatch: 502,
};

/** v1 clients read 429 as "subscription not active"; that v2 lacks a route is not their concern. */
const SHOWN_STATUS: { readonly [status: number]: number } = { 422: 400, 429: 503, 501: 502 };

/**
 * A v2 refusal about a file as v1 clients understand it: what is gone is an empty 404, v2's own
 * 422 is a 400, a pause it asks for a 503; the rest keeps its status and says why.
 */
export function relayRefusal(error: V2Error): V1Error {
  const { status, code, retryAfterSeconds } = error;
  if (isGone(error)) return emptyError(404, 'The file is gone.');
  const wait = retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  const shown = isFailure(error) ? 502 : (SHOWN_AS[code] ?? SHOWN_STATUS[status] ?? status);
  const message = isFailure(error) ? NOT_BROUGHT : messageOf(error);
  return new V1Error(shown, plainError(code, message), { headers: wait, blames: 'job service' });
}

/** A 500 would blame Holdover. */
function isFailure({ status, code }: V2Error): boolean {
  return status === 500 && code === 'upstream_error';
}

const NOT_BROUGHT =
  'The job service could not do this with the file: it, or the engine behind it, failed or is ' +
  'down. Please try again.';
