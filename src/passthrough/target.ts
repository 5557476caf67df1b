import { decodedPart } from '../protocol/request-target.ts';
import { MODEL_PATHS, PARTNER_PATHS } from '../protocol/router.ts';
import { V2_PREFIX, isV2Path } from '../protocol/v2-paths.ts';

/** Returns the upstream's target for a path; `undefined` when the path is not for the upstream. */
export type TargetOf = (path: string) => string | undefined;

/**
 * Returns the targets of the v2 API. Host-relative links of its answers include the mount already.
 */
export function v2TargetOf(mount: string): TargetOf {
  const mounted = mount + V2_PREFIX;
  return (path) => {
    if (mount !== '' && isBelow(mounted, path)) return path;
    return isV2Path(path) ? mount + path : undefined;
  };
}

const JOB_TARGET = /^([^?]*?\/api\/v2\/jobs\/)([^/?]+)([^?]*)/;

/** The job that a v2 call is about. `operation` follows the id in the path: `''` is the job itself. */
type JobOfTarget = { readonly jobId: string; readonly operation: string };

/** Returns the job that a v2 call is about; `undefined`: it is not about a job. */
export function jobOfTarget(target: string): JobOfTarget | undefined {
  const [, , id, operation = ''] = JOB_TARGET.exec(target) ?? [];
  const jobId = decodedPart(id);
  return jobId === undefined ? undefined : { jobId, operation };
}

/** True for the target of all jobs, to which a `POST` submits one. */
export function isJobsTarget(target: string): boolean {
  return /^[^?]*\/api\/v2\/jobs\/?(?:\?|$)/.test(target);
}

/** Returns the target of the same call for another job. */
export function withJobId(target: string, jobId: string): string {
  return target.replace(
    JOB_TARGET,
    (_all, before, _id, operation) => before + encodeURIComponent(jobId) + operation,
  );
}

/**
 * Returns the targets of the model router and of its queue. The hosted service has it below `/v2`
 * only, the contract below `/v1`: the client knows which.
 */
export function modelTargetOf(mount: string): TargetOf {
  return (path) => (MODEL_PATHS.test(path) ? mount + path : undefined);
}

/** Returns the targets of the partner routes beside the model router. */
export function partnerTargetOf(mount: string): TargetOf {
  return (path) => (PARTNER_PATHS.test(path) ? mount + path : undefined);
}

function isBelow(prefix: string, path: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

const DOT_SEGMENTS = /(^|\/|\\|%2f|%5c)(\.|%2e){1,2}($|\/|\\|;|%2f|%5c|%3b)/i;

/**
 * True when a path has dot segments: a proxy in between may resolve them, and the call would leave
 * the allowed prefix.
 */
export function hasDotSegments(path: string): boolean {
  return DOT_SEGMENTS.test(path) || path.includes('#');
}
