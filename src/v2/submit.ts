import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../telemetry.ts';
import {
  type Result,
  type SubmitRequest,
  type V2Error,
  isAboutContent,
  isForNow,
  ok,
} from '../wire/jobs.ts';
import { IS_TERMINAL, type Job } from '../wire/v2.ts';
import type { Account } from './accounts.ts';
import type { Calls, Exchange } from './call.ts';
import { retryAfterMs, toError, unreachable } from './errors.ts';
import type { Facts } from './facts.ts';
import type { RemoteLimits } from './limits.ts';
import type { UpstreamLinks } from './links.ts';
import type { Recovery } from './recover.ts';
import { readJob } from './schemas.ts';
import type { Snapshots } from './snapshots.ts';
import { respell, settleSpelling } from './spelling.ts';
import { type Spelling, submitBody } from './submit-body.ts';

/** What one attempt to submit came to. */
type Verdict =
  | { readonly kind: 'accepted'; readonly job: Job }
  | { readonly kind: 'refused'; readonly error: V2Error }
  /** A definitive no that may become a yes. */
  | { readonly kind: 'wait'; readonly error: V2Error; readonly forMs: number }
  | { readonly kind: 'not_sent' }
  /** `isAnswered`: the service is done with the request, and says that it does not know either. */
  | { readonly kind: 'unknown'; readonly error: V2Error; readonly isAnswered: boolean };

export type SubmitDeps = {
  readonly calls: Calls;
  readonly links: UpstreamLinks;
  readonly snapshots: Snapshots;
  readonly recovery: Recovery;
  readonly facts: Facts;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
  readonly log: Logger;
};

type Sending = { readonly account: Account; readonly request: SubmitRequest; readonly key: string };

/** What earlier attempts of a submission have come to. */
type Tries = {
  spelling: Spelling;
  readonly deadlineMs: number;
  unsent: number;
  unknown: number;
  /** An attempt was given no answer: the service may still be at it. */
  isAnswerMissing: boolean;
  /** Why the first way of naming files was refused: it says more than why the second was. */
  firstRefusal: V2Error | undefined;
};

type Next =
  | { readonly kind: 'again'; readonly afterMs: number }
  | { readonly kind: 'give up'; readonly outcome: Outcome; readonly error: V2Error }
  /** What to say when there is no job to be found. */
  | { readonly kind: 'search'; readonly outcome: Outcome; readonly error: V2Error };

type Outcome = NonNullable<V2Error['outcome']>;

/**
 * Submits under one key until the outcome is known, or as known as it gets. A key is used up by the
 * first request that reaches submission and is never replayed: sending it again cannot run a job
 * twice, but cannot tell its id either. No other key is ever used.
 */
export async function submitJob(
  deps: SubmitDeps,
  asked: Pick<Sending, 'account' | 'request'> & { readonly spelling: Spelling },
): Promise<Result<Job>> {
  const { account, request, spelling } = asked;
  const sending = { account, request, key: request.idempotencyKey ?? randomUUID() };
  // Compared with what the service tells of a job, which is by its own clock.
  const sentAtMs = Date.now();
  const deadlineMs = deps.clock() + deps.limits.submitBudgetMs;
  const tries: Tries = {
    spelling,
    deadlineMs,
    unsent: 0,
    unknown: 0,
    isAnswerMissing: false,
    firstRefusal: undefined,
  };
  let next: Next;
  for (;;) {
    const verdict = await attempt(deps, sending, tries);
    if (verdict.kind === 'accepted') {
      settleSpelling(deps.facts, tries.spelling, request);
      return accept(deps, account, verdict.job);
    }
    next = decide(deps, { tries, request, verdict });
    if (next.kind === 'give up') return refusedAs(next.outcome, next.error);
    if (next.kind === 'search') break;
    await delay(next.afterMs);
  }
  const { workflow, metadata } = request;
  const isAnswered = tries.unknown > 0 && !tries.isAnswerMissing;
  const lost = { workflow, sentAtMs, isAnswered, ...(metadata && { metadata }) };
  const found = await deps.recovery.search(account, lost);
  if (typeof found === 'object') return accept(deps, account, found);
  if (!isAnswered || next.outcome !== 'unknown') return refusedAs(next.outcome, next.error);
  return found === 'absent'
    ? refusedAs('not_taken', NOT_TAKEN)
    : refusedAs('unknown', found === 'engine down' ? ENGINE_DOWN : next.error);
}

type Failed = {
  readonly tries: Tries;
  readonly request: SubmitRequest;
  readonly verdict: Exclude<Verdict, { kind: 'accepted' }>;
};

/** The table: what to do after an attempt that made no job we know of. */
function decide(deps: SubmitDeps, { tries, request, verdict }: Failed): Next {
  const { limits, clock, log } = deps;
  if (verdict.kind === 'refused') return afterRefusal(deps, tries, { request, ...verdict });
  if (verdict.kind === 'wait') {
    if (clock() + verdict.forMs <= tries.deadlineMs) return { kind: 'again', afterMs: 0 };
    // A key is in the way only where it came before.
    if (verdict.error.status === 409) return SEARCH;
    return giveUp(tries, 'refused', verdict.error);
  }
  if (verdict.kind === 'not_sent') {
    const afterMs = limits.unsentRetryMs[tries.unsent++];
    if (afterMs !== undefined) return { kind: 'again', afterMs };
    return giveUp(tries, 'not_sent', unreachable());
  }
  log.warn({ status: verdict.error.status }, 'the outcome of a submission is unknown');
  tries.isAnswerMissing ||= !verdict.isAnswered;
  const afterMs = limits.unknownRetryMs[tries.unknown++];
  return afterMs === undefined ? SEARCH : { kind: 'again', afterMs };
}

function afterRefusal(
  deps: SubmitDeps,
  tries: Tries,
  refused: { readonly request: SubmitRequest; readonly error: V2Error },
): Next {
  const { error } = refused;
  const next = respell(deps.facts, tries.spelling, refused);
  if (!next) {
    const said = isAboutContent(error) ? tries.firstRefusal : undefined;
    return giveUp(tries, 'refused', said ?? error);
  }
  if (next.assetMode !== tries.spelling.assetMode) tries.firstRefusal = error;
  tries.spelling = next;
  return { kind: 'again', afterMs: 0 };
}

/**
 * The end, unless an earlier attempt may have made a job: keys are looked at last, so a full queue
 * or a refused credential says nothing of it. What is wrong with the submission itself was wrong
 * then, too, as far as anybody can see.
 */
function giveUp(tries: Tries, outcome: Outcome, error: V2Error): Next {
  if (tries.unknown === 0) return { kind: 'give up', outcome, error };
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

/** One attempt, when the account may and there is room for it. */
async function attempt(
  deps: SubmitDeps,
  sending: Sending,
  { spelling, deadlineMs }: Pick<Tries, 'spelling' | 'deadlineMs'>,
): Promise<Verdict> {
  const { account, request, key } = sending;
  const { gate, turnstile } = account.submits;
  await turnstile.enter();
  let how: 'passed' | 'crowded' | 'otherwise' = 'otherwise';
  try {
    const budgetMs = deadlineMs - deps.clock();
    const mayCall = (await gate.pass({ budgetMs })) && (await account.gate.pass({ budgetMs }));
    if (!mayCall) return { kind: 'refused', error: tooBusy(account) };
    const exchange = await deps.calls.once(account, {
      method: 'POST',
      path: deps.links.target('jobs'),
      headers: { 'idempotency-key': key },
      body: submitBody(request, spelling),
      timeoutMs: deps.limits.submitTimeoutMs,
    });
    const verdict = judge(deps, account, exchange);
    if (verdict.kind === 'accepted') how = 'passed';
    if (verdict.kind === 'wait') {
      how = 'crowded';
      gate.shut(verdict.forMs);
    }
    return verdict;
  } finally {
    turnstile.leave(how);
  }
}

/** Whether an answer says nothing about whether there is a job now; proxies have numbers of their own. */
function isAmbiguous(status: number): boolean {
  return AMBIGUOUS.has(status) || (status >= 500 && status !== 501);
}

const AMBIGUOUS = new Set([408, 425, 499]);

function judge(deps: SubmitDeps, account: Account, exchange: Exchange): Verdict {
  if (exchange.kind === 'lost') {
    if (!exchange.wasSent) return { kind: 'not_sent' };
    return { kind: 'unknown', error: unreachable(), isAnswered: false };
  }
  const { reply } = exchange;
  const { status, headers } = reply;
  if (status < 300) {
    const job = readJob(reply.json);
    if (job) return { kind: 'accepted', job };
    const isPage = /\bhtml\b/i.test(headers['content-type'] ?? '');
    const error = { ...toError(reply, account.key), status: 502, code: 'bad_upstream_response' };
    // Somebody in between wants a login; the service never saw the submission.
    return isPage && status === 200
      ? { kind: 'refused', error }
      : { kind: 'unknown', error, isAnswered: false };
  }
  if (isAmbiguous(status)) {
    const error = toError(reply, account.key);
    return { kind: 'unknown', error, isAnswered: error.engineDown === true };
  }
  const error = deps.calls.refusal(account, reply);
  const isInFlight = status === 409 && error.retryAfterSeconds !== undefined;
  if (!isForNow(error) && !isInFlight) return { kind: 'refused', error };
  return { kind: 'wait', error, forMs: retryAfterMs(error.retryAfterSeconds, deps.limits) };
}

function accept({ recovery, snapshots }: SubmitDeps, account: Account, job: Job): Result<Job> {
  recovery.take(job.id);
  snapshots.learn(account, job);
  // How a job ended is asked once more: not every server's answer to a submission is whole.
  if (IS_TERMINAL[job.status]) snapshots.outdate(account, job.id);
  return ok(job);
}

function refusedAs(outcome: Outcome, error: V2Error): Result<never> {
  return { ok: false, error: { ...error, outcome } };
}

function tooBusy({ gate, submits }: Account): V2Error {
  const waitMs = Math.max(gate.waitMs(), submits.gate.waitMs());
  return {
    status: 429,
    code: 'queue_full',
    message: 'The job service has no room for more jobs right now.',
    details: null,
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  };
}
