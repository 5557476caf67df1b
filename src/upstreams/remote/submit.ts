import { isCapacityRefusal } from '../../translate/prompt-refusal.ts';
import { randomUUID } from 'node:crypto';
import type { AttemptEnd } from '../../lib/concurrency.ts';
import {
  type Result,
  type SubmitRequest,
  type V2Error,
  isAboutContent,
  ok,
} from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { Account } from '../remote-calls/accounts.ts';
import type { CallOutcome, RemoteClient } from '../remote-calls/calls.ts';
import { retryAfterMs, toError, unreachable } from '../remote-calls/errors.ts';
import type { Recovery } from './recovery.ts';
import { readJob } from './schemas.ts';
import type { Snapshots } from '../remote-events/snapshots.ts';
import { nextFormat, rememberFormat, type SubmitFormat, submitBody } from './submit-format.ts';

/** The result of one attempt to submit. */
type AttemptResult =
  | { readonly kind: 'accepted'; readonly job: Job }
  | { readonly kind: 'refused'; readonly error: V2Error }
  /** A definite refusal that may be lifted later. */
  | { readonly kind: 'wait'; readonly error: V2Error; readonly forMs: number }
  | { readonly kind: 'not_sent' }
  /** It was not sent again: nothing could tell if the service has the job already. */
  | { readonly kind: 'not_repeated' }
  /** `isAnswered`: the service has finished the request and does not know the outcome either. */
  | { readonly kind: 'unknown'; readonly error: V2Error; readonly isAnswered: boolean };

export type SubmitOptions = RemoteClient & {
  readonly snapshots: Snapshots;
  readonly recovery: Recovery;
};

type KeyedSubmission = {
  readonly account: Account;
  readonly request: SubmitRequest;
  readonly key: string;
};

/** The state of a submission over all its attempts. */
type SubmitState = {
  format: SubmitFormat;
  readonly deadlineMs: number;
  unsent: number;
  unknown: number;
  /** True when an attempt got no answer: the service may still work on it. */
  isAnswerMissing: boolean;
  /** The refusal of the first format, which says more than that of the second one. */
  firstRefusal: V2Error | undefined;
};

type NextStep =
  | { readonly kind: 'retry'; readonly afterMs: number }
  | { readonly kind: 'give up'; readonly outcome: Outcome; readonly error: V2Error }
  /** The error to return when no job is found. */
  | { readonly kind: 'search'; readonly outcome: Outcome; readonly error: V2Error };

type Outcome = NonNullable<V2Error['outcome']>;

/**
 * Submits under one key until the outcome is known, as far as possible. The first request that
 * reaches a service of the contract uses up the key and is never replayed: to send it again cannot
 * run a job twice, but does not return its id either. No other key is used.
 */
export async function submitJob(
  options: SubmitOptions,
  asked: Pick<KeyedSubmission, 'account' | 'request'> & { readonly format: SubmitFormat },
): Promise<Result<Job>> {
  const { account, request, format } = asked;
  const submission = { account, request, key: request.idempotencyKey ?? randomUUID() };
  // Compared with times of the service, which has its own clock.
  const sentAtMs = Date.now();
  const deadlineMs = options.clock.now() + options.limits.submitBudgetMs;
  const state: SubmitState = {
    format,
    deadlineMs,
    unsent: 0,
    unknown: 0,
    isAnswerMissing: false,
    firstRefusal: undefined,
  };
  let next: NextStep;
  for (;;) {
    const mayRepeat =
      request.isRepeated || state.unknown > 0 ? await options.recovery.mayRepeat(account) : 'yes';
    const result =
      mayRepeat === 'yes' ? await attempt(options, submission, state) : NOT_MADE[mayRepeat];
    if (result.kind === 'accepted') {
      rememberFormat(options.capabilities, state.format, request);
      return accept(options, account, result.job);
    }
    next = decide(options, { state, request, result });
    if (next.kind === 'give up') return refuseWithOutcome(next.outcome, next.error);
    if (next.kind === 'search') break;
    await options.clock.sleep(next.afterMs);
  }
  const { workflow, metadata } = request;
  const isAnswered = state.unknown > 0 && !state.isAnswerMissing;
  const lost = { workflow, sentAtMs, isAnswered, ...(metadata && { metadata }) };
  const recovered = await options.recovery.search(account, lost);
  if (typeof recovered === 'object') return accept(options, account, recovered);
  if (!isAnswered || next.outcome !== 'unknown') return refuseWithOutcome(next.outcome, next.error);
  return recovered === 'absent'
    ? refuseWithOutcome('not_taken', NOT_TAKEN)
    : refuseWithOutcome('unknown', recovered === 'engine down' ? ENGINE_DOWN : next.error);
}

type FailedAttempt = {
  readonly state: SubmitState;
  readonly request: SubmitRequest;
  readonly result: Exclude<AttemptResult, { kind: 'accepted' }>;
};

/** Decides what follows an attempt that made no known job. */
function decide(options: SubmitOptions, { state, request, result }: FailedAttempt): NextStep {
  const { limits, clock, log } = options;
  if (result.kind === 'refused') return afterRefusal(options, state, { request, ...result });
  if (result.kind === 'wait') {
    if (clock.now() + result.forMs <= state.deadlineMs) return { kind: 'retry', afterMs: 0 };
    // A key is refused as used only if an earlier attempt used it.
    if (result.error.status === 409) return SEARCH;
    return giveUp(state, 'refused', result.error);
  }
  if (result.kind === 'not_repeated') return { ...SEARCH, outcome: 'not_repeatable' };
  if (result.kind === 'not_sent') {
    const afterMs = limits.unsentRetryMs[state.unsent++];
    if (afterMs !== undefined) return { kind: 'retry', afterMs };
    return giveUp(state, 'not_sent', unreachable());
  }
  const event = 'upstream.submission_outcome_unknown';
  log.warn({ event, status: result.error.status }, 'the outcome of a submission is unknown');
  state.isAnswerMissing ||= !result.isAnswered;
  const afterMs = limits.unknownRetryMs[state.unknown++];
  return afterMs === undefined ? SEARCH : { kind: 'retry', afterMs };
}

function afterRefusal(
  options: SubmitOptions,
  state: SubmitState,
  refused: { readonly request: SubmitRequest; readonly error: V2Error },
): NextStep {
  const { error } = refused;
  const next = nextFormat(options.capabilities, state.format, refused);
  if (!next) {
    const shownError = isAboutContent(error) ? state.firstRefusal : undefined;
    return giveUp(state, 'refused', shownError ?? error);
  }
  if (next.assetMode !== state.format.assetMode) state.firstRefusal = error;
  state.format = next;
  return { kind: 'retry', afterMs: 0 };
}

/**
 * Ends the submission, unless an earlier attempt may have made a job. Services check keys last, so
 * a full queue or a refused credential says nothing about that. A fault in the submission itself
 * existed at the earlier attempt too.
 */
function giveUp(state: SubmitState, outcome: Outcome, error: V2Error): NextStep {
  if (state.unknown === 0) return { kind: 'give up', outcome, error };
  return isAboutContent(error) ? { kind: 'search', outcome: 'refused_late', error } : SEARCH;
}

const UNKNOWN: V2Error = {
  status: 500,
  code: 'submit_outcome_unknown',
  message: 'The job service did not answer in time; whether it took the job is unknown.',
  details: null,
};
const NOT_TAKEN: V2Error = {
  status: 503,
  code: 'upstream_unreachable',
  message: 'The job service cannot reach its engine, and has no job of this submission.',
  details: null,
};
const ENGINE_DOWN: V2Error = {
  ...UNKNOWN,
  message: 'The job service cannot reach its engine; whether that took the job is unknown.',
  engineDown: true,
};
const SEARCH = { kind: 'search', outcome: 'unknown', error: UNKNOWN } as const;
const NOT_MADE = {
  no: { kind: 'not_repeated' },
  unreachable: { kind: 'not_sent' },
} as const;

/** Makes one attempt, when the account may call and the semaphore admits it. */
async function attempt(
  options: SubmitOptions,
  submission: KeyedSubmission,
  { format, deadlineMs }: Pick<SubmitState, 'format' | 'deadlineMs'>,
): Promise<AttemptResult> {
  const { account, request, key } = submission;
  const { gate, semaphore } = account.submissions;
  await semaphore.acquire();
  let end: AttemptEnd = 'other';
  try {
    const budgetMs = deadlineMs - options.clock.now();
    const mayCall =
      (await gate.waitUntilOpen({ budgetMs })) && (await account.gate.waitUntilOpen({ budgetMs }));
    if (!mayCall) return { kind: 'refused', error: tooBusy(account) };
    const answer = await options.calls.once(account, {
      method: 'POST',
      path: options.links.target('jobs'),
      headers: { 'idempotency-key': key },
      body: submitBody(request, format),
      timeoutMs: options.limits.submitTimeoutMs,
    });
    const result = interpretAnswer(options, account, answer);
    if (result.kind === 'accepted') end = 'passed';
    if (result.kind === 'wait') {
      end = 'no capacity';
      gate.closeFor(result.forMs);
    }
    return result;
  } finally {
    semaphore.release(end);
  }
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
): AttemptResult {
  if (answer.kind === 'lost') {
    if (!answer.wasSent) return { kind: 'not_sent' };
    return { kind: 'unknown', error: unreachable(), isAnswered: false };
  }
  const { reply } = answer;
  const { status, headers } = reply;
  if (status < 300) {
    const job = readJob(reply.json);
    if (job) return { kind: 'accepted', job };
    const isPage = /\bhtml\b/i.test(headers['content-type'] ?? '');
    const error = { ...toError(reply, account.key), status: 502, code: 'bad_upstream_response' };
    // A proxy in between requires a login; the service never got the submission.
    return isPage && status === 200
      ? { kind: 'refused', error }
      : { kind: 'unknown', error, isAnswered: false };
  }
  if (isAmbiguous(status)) {
    const error = toError(reply, account.key);
    return { kind: 'unknown', error, isAnswered: error.engineDown === true };
  }
  const error = options.calls.recordRefusal(account, reply);
  const isInFlight = status === 409 && error.retryAfterSeconds !== undefined;
  if (!isCapacityRefusal(error) && !isInFlight) return { kind: 'refused', error };
  return { kind: 'wait', error, forMs: retryAfterMs(error.retryAfterSeconds, options.limits) };
}

function accept({ recovery, snapshots }: SubmitOptions, account: Account, job: Job): Result<Job> {
  recovery.claim(job.id);
  snapshots.store(account, job);
  // An ended job is read once more: some servers answer a submission with an incomplete job.
  if (IS_TERMINAL[job.status]) snapshots.invalidate(account, job.id);
  return ok(job);
}

function refuseWithOutcome(outcome: Outcome, error: V2Error): Result<never> {
  return { ok: false, error: { ...error, outcome } };
}

function tooBusy({ gate, submissions }: Account): V2Error {
  const waitMs = Math.max(gate.waitMs(), submissions.gate.waitMs());
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1000));
  const message = 'The job service has no room for more jobs right now.';
  return { status: 429, code: 'queue_full', message, details: null, retryAfterSeconds };
}
