import { randomUUID } from 'node:crypto';
import {
  type Result,
  type SubmitRequest,
  type V2Error,
  isAboutContent,
  ok,
  v2Error,
} from '../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../protocol/v2.ts';
import { isCapacityRefusal } from '../translate/prompt-refusal.ts';
import type { Account } from './calls/accounts.ts';
import type { CallOutcome, RemoteClient } from './calls/calls.ts';
import { isHtml, retryAfterMs, toError, unreachable } from './calls/errors.ts';
import type { Snapshots } from './events/snapshots.ts';
import type { RemoteJobSearch } from './job-search.ts';
import { readJob } from './schemas.ts';
import { nextFormat, rememberFormat, type SubmitFormat, submitBody } from './submit-format.ts';

export type SubmitOptions = RemoteClient & {
  readonly snapshots: Snapshots;
  readonly jobSearch: RemoteJobSearch;
};

type Submission = {
  readonly account: Account;
  readonly request: SubmitRequest;
  readonly key: string;
};

/**
 * Makes one attempt to submit. After a certain refusal that may be about the format, the same
 * submission is sent in another format. The error says if there may be a job: `unknown` also stands
 * for each answer of a proxy or of a service that failed.
 */
export async function submitJob(
  options: SubmitOptions,
  asked: Omit<Submission, 'key'> & { readonly format: SubmitFormat },
): Promise<Result<Job>> {
  const { account, request } = asked;
  const submission = { account, request, key: request.idempotencyKey ?? randomUUID() };
  let firstRefusal: V2Error | undefined;
  for (let { format } = asked; ;) {
    const result = await attempt(options, submission, format);
    if (result.ok) {
      rememberFormat(options.capabilities, format, request);
      return accept(options, submission, result.value);
    }
    const { error } = result;
    if (error.outcome !== undefined) return result;
    const next = nextFormat(options.capabilities, format, { request, error });
    // The refusal of the first format says more than that of the second one.
    if (!next) return { ok: false, error: (isAboutContent(error) && firstRefusal) || error };
    if (next.assetMode !== format.assetMode) firstRefusal = error;
    format = next;
  }
}

/** Sends the submission, when the account may call and the semaphore admits it. */
function attempt(
  options: SubmitOptions,
  { account, request, key }: Submission,
  format: SubmitFormat,
): Promise<Result<Job>> {
  const { gate, semaphore } = account.submissions;
  return semaphore(async () => {
    const pauseMs = Math.max(account.gate.waitMs(), gate.waitMs());
    if (pauseMs > 0) return { ok: false, error: tooBusy(pauseMs) };
    const answer = await options.calls.once(account, {
      method: 'POST',
      path: options.links.target('jobs'),
      headers: { 'idempotency-key': key },
      body: submitBody(request, format),
      timeoutMs: options.limits.submitTimeoutMs,
    });
    const result = interpretAnswer(options, account, answer);
    if (!result.ok && isCapacityRefusal(result.error))
      gate.closeFor(retryAfterMs(result.error.retryAfterSeconds, options.limits));
    return result;
  });
}

/** True when an answer does not show if a job exists: proxies have status codes of their own. */
function isAmbiguous(status: number): boolean {
  return AMBIGUOUS.has(status) || (status >= 500 && status !== 501);
}

const AMBIGUOUS = new Set([408, 425, 499]);

function interpretAnswer(
  options: SubmitOptions,
  account: Account,
  answer: CallOutcome,
): Result<Job> {
  if (!answer.ok) {
    const outcome = answer.wasSent ? 'unknown' : 'not sent';
    return { ok: false, error: { ...unreachable(), outcome } };
  }
  const { reply } = answer;
  const { status, headers } = reply;
  if (status < 300) {
    const job = readJob(reply.json);
    if (job) return ok(job);
    const error = { ...toError(reply, account.key), status: 502, code: 'bad_upstream_response' };
    // A proxy in between requires a login; the service never got the submission.
    const isPage = status === 200 && isHtml(headers);
    return { ok: false, error: isPage ? error : { ...error, outcome: 'unknown' } };
  }
  if (isAmbiguous(status))
    return { ok: false, error: { ...toError(reply, account.key), outcome: 'unknown' } };
  const error = options.calls.recordRefusal(account, reply);
  // A request under the same key is in progress.
  const isInFlight = status === 409 && error.retryAfterSeconds !== undefined;
  return { ok: false, error: isInFlight ? { ...error, outcome: 'unknown' } : error };
}

function accept(
  { jobSearch, snapshots }: SubmitOptions,
  { account, request }: Submission,
  job: Job,
): Result<Job> {
  jobSearch.claim(job.id, request.metadata);
  snapshots.noteSecrets(account, job.id, Object.values(request.extraData));
  const shown = snapshots.store(account, job);
  // An ended job is read once more: some servers answer a submission with an incomplete job.
  if (IS_TERMINAL[job.status]) snapshots.invalidate(account, job.id);
  return ok(shown);
}

function tooBusy(pauseMs: number): V2Error {
  const retryAfterSeconds = Math.max(1, Math.ceil(pauseMs / 1000));
  const message = 'The job service has no room for more jobs right now.';
  return v2Error(429, 'queue_full', message, { retryAfterSeconds });
}
