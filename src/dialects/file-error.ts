import { type V2Error, isGone } from '../protocol/job-api.ts';
import { messageOf } from '../translate/prompt-refusal.ts';
import { V1Error, emptyError, plainError } from './errors.ts';

/** Refusals whose own status would blame the client, or mean something else to it. */
const V1_STATUS_BY_CODE: { readonly [code: string]: number } = {
  upstream_unreachable: 502,
  bad_upstream_response: 502,
  /** The bytes were damaged between us and the upstream, twice. */
  hash_mismatch: 502,
};

/** v1 clients read 429 as "subscription not active"; that v2 lacks a route is not their concern. */
const V1_STATUS_BY_STATUS: { readonly [status: number]: number } = { 422: 400, 429: 503, 501: 502 };

/**
 * A v2 refusal about a file as v1 clients understand it: what is gone is an empty 404, v2's own
 * 422 is a 400, a pause it asks for a 503; the rest keeps its status and says why.
 */
export function toV1FileError(error: V2Error): V1Error {
  const { status, code, retryAfterSeconds } = error;
  if (isGone(error)) return emptyError(404, 'The file is gone.');
  const headers =
    retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) };
  const v1Status = isEngineFailure(error)
    ? 502
    : (V1_STATUS_BY_CODE[code] ?? V1_STATUS_BY_STATUS[status] ?? status);
  const message = isEngineFailure(error) ? ENGINE_FAILED : messageOf(error);
  return new V1Error(v1Status, plainError(code, message), {
    headers: headers,
    blames: 'job service',
  });
}

/** A 500 would blame Holdover. */
function isEngineFailure({ status, code }: V2Error): boolean {
  return status === 500 && code === 'upstream_error';
}

const ENGINE_FAILED =
  'The job service could not do this with the file: it, or the engine behind it, failed or is ' +
  'down. Please try again.';
