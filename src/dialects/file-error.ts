import { errorCodeOf } from '../protocol/error-codes.ts';
import { type V2Error, isGone } from '../protocol/job-api.ts';
import { isAboutSubscription, messageOf } from '../translate/prompt-refusal.ts';
import { V1Error, emptyError, plainError, retryAfterHeader } from './errors.ts';

/**
 * v1 clients read 429 as "subscription not active", which only a refusal about a subscription is. A
 * route that v2 lacks is a gateway failure for them.
 */
const V1_STATUS_BY_STATUS: { readonly [status: number]: number } = { 422: 400, 429: 503, 501: 502 };

/**
 * Translates a v2 refusal about a file: a missing file becomes an empty 404, v2's 422 a 400, a
 * requested pause a 503. Other refusals keep their status and message.
 */
export function toV1FileError(error: V2Error): V1Error {
  const { code, retryAfterSeconds } = error;
  if (isGone(error)) return emptyError(404, 'The file is gone.');
  const message = isEngineFailure(error) ? ENGINE_FAILED : messageOf(error);
  return new V1Error(v1StatusOf(error), plainError(code, message), {
    headers: retryAfterHeader(retryAfterSeconds),
    blames: 'job service',
  });
}

function v1StatusOf(error: V2Error): number {
  const { status, code } = error;
  if (isEngineFailure(error) || status >= 600) return 502;
  if (isAboutSubscription(error)) return 429;
  return errorCodeOf(code)?.v1FileStatus ?? V1_STATUS_BY_STATUS[status] ?? status;
}

/**
 * True for a failure of the engine. It is answered with 502, since a 500 would mean that Holdover
 * failed.
 */
function isEngineFailure({ status, code }: V2Error): boolean {
  return status === 500 && code === 'upstream_error';
}

const ENGINE_FAILED =
  'The job service could not do this with the file: it, or the engine behind it, failed or is ' +
  'down. Please try again.';
