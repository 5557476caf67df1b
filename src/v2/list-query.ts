import { type JobListQuery, type Result, ok, refuse } from '../protocol/job-api.ts';
import { JOB_STATUSES, type Job, type JobStatus } from '../protocol/v2.ts';
import { badRequest } from './reply.ts';
import { isLabel } from './read-submission.ts';

const MAX_LIMIT = 100;
const MAX_LABEL_FILTERS = 3;

/** Reads the query of `GET /jobs`. Parameters that the contract does not know are ignored. */
export function readListQuery(querystring: string): Result<JobListQuery> {
  const query = new URLSearchParams(querystring);
  const limit = readLimit(query.get('limit'));
  if (!limit.ok) return limit;
  const status = readStatuses(query.get('status'));
  if (!status.ok) return status;
  const metadata = readFilter(query, querystring);
  if (!metadata.ok) return metadata;
  const cursor = query.get('cursor');
  return ok({
    ...(limit.value !== undefined && { limit: limit.value }),
    ...(cursor !== null && cursor !== '' && { cursor }),
    ...(status.value && { status: status.value }),
    ...(metadata.value && { metadata: metadata.value }),
  });
}

/**
 * Returns the whole job as a list item, with the two times under the names that the hosted service
 * uses.
 */
export function toListItem(
  job: Job,
): Job & { readonly create_time: string; readonly update_time: string } {
  const changedAt = job.completed_at ?? job.started_at ?? job.created_at;
  return { ...job, create_time: job.created_at, update_time: changedAt };
}

function readLimit(text: string | null): Result<number | undefined> {
  if (text === null) return ok(undefined);
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return ok(limit);
  return badRequest(`"limit" must be a whole number from 1 to ${MAX_LIMIT}.`);
}

function readStatuses(text: string | null): Result<readonly JobStatus[] | undefined> {
  if (text === null) return ok(undefined);
  const words = text.split(',').map((word) => word.trim());
  if (words.every(isStatus)) return ok(words);
  return badRequest(`"status" must be a comma-separated list of ${JOB_STATUSES.join(', ')}.`);
}

function isStatus(word: string): word is JobStatus {
  return (JOB_STATUSES as readonly string[]).includes(word);
}

/**
 * Reads `metadata[name]=value`, each name once. A truncated escape is refused, since it would match
 * another value.
 */
function readFilter(query: URLSearchParams, querystring: string): Result<JobListQuery['metadata']> {
  const pairs = [...query].flatMap(([key, value]) => {
    const name = /^metadata\[(.*)\]$/s.exec(key)?.[1];
    return name === undefined ? [] : [[name, value] as const];
  });
  if (pairs.length === 0) return ok(undefined);
  const metadata = new Map(pairs);
  const hasRepeatedName = metadata.size !== pairs.length;
  const hasBrokenEscape = /%(?![0-9a-f]{2})/i.test(querystring);
  const fits = pairs.every(([name, value]) => isLabel(name, value));
  if (pairs.length > MAX_LABEL_FILTERS || hasRepeatedName || hasBrokenEscape || !fits) {
    const rule = `up to ${MAX_LABEL_FILTERS} filters metadata[name]=value, each name once, URL-encoded`;
    return refuse(400, 'invalid_metadata_filter', `Labels are searched for with ${rule}.`);
  }
  return ok(Object.fromEntries(metadata));
}
