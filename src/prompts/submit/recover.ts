import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../../ledger/ledger.ts';
import { jobErrorOf } from '../../translate/late-rejection.ts';
import type { Logger } from '../../observability/log.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LinkJob } from './link-job.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { Follower } from '../follow/follower.ts';
import type { RemovePrompt } from '../state/remove-prompt.ts';
import type { LateJobs } from './late-jobs.ts';
import { type RetryPolicy, withJitter } from './retry-policy.ts';
import { type SubmissionPlan, toStoredPlan, withNewKey } from './plan.ts';
import { LeadershipLost, type PromptEventLog } from '../prompt-event-log.ts';
import type { SubmissionRetry } from './retry.ts';
import {
  type RecoveryAction,
  type ClientKnows,
  type JobNotFound,
  nextRecoveryAction,
} from './recovery-rules.ts';

/**
 * A prompt whose submission may or may not have made a job.
 * @internal
 */
export type AmbiguousSubmission = {
  readonly prompt: LivePrompt;
  readonly plan: SubmissionPlan;
  /**
   * `accepted`: the client was told that it runs, so it is sent until it has a job. `unknown`: the
   * client was told that its outcome is unknown. `unheard`: the process died before it answered.
   */
  readonly clientKnows: ClientKnows;
  /**
   * The key must not be sent again: an attempt certainly reached the service, the client wants to
   * cancel, or the secrets are gone.
   */
  readonly isKeyUsed: boolean;
  /** Every request was answered with: the service cannot reach its engine. */
  readonly isEngineDown?: boolean;
};

/** Searches for the jobs of such prompts until they are found or given up. */
export type SubmissionRecovery = {
  recover(ambiguous: AmbiguousSubmission): void;
  /** Cancels a prompt whose job is searched for. False: it is not, or its job was just found. */
  withdraw(prompt: LivePrompt): Promise<boolean>;
  close(): Promise<void>;
};

export type SubmissionRecoveryOptions = {
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'setIntent'> };
  readonly submissionRetry: SubmissionRetry;
  readonly follower: Follower;
  readonly linkJob: LinkJob;
  readonly promptEventLog: Pick<PromptEventLog, 'isLeader'>;
  readonly removePrompt: RemovePrompt;
  readonly lateJobs: Pick<LateJobs, 'cancelWhenFound'>;
  readonly retryPolicy: RetryPolicy;
  readonly log: Logger;
  readonly now: () => number;
};

type Recovery = {
  readonly prompt: LivePrompt;
  readonly clientKnows: ClientKnows;
  plan: SubmissionPlan;
  isKeyFree: 'yes' | 'no';
  /** Since when only searching is possible. */
  searchedSinceMs: number;
  lastResult: { readonly result: JobNotFound; readonly sinceMs: number } | undefined;
  newKeys: number;
  isEngineDown: boolean;
  /** `linking`: its job was found; `ended`: it was cancelled or given up. */
  state: 'searching' | 'linking' | 'ended';
  readonly wake: AbortController;
};

/** More new keys without a job than this are no accident. */
const MAX_NEW_KEYS = 3;

export function createSubmissionRecovery(deps: SubmissionRecoveryOptions): SubmissionRecovery {
  const {
    ledger,
    submissionRetry,
    follower,
    promptEventLog,
    linkJob,
    lateJobs,
    retryPolicy,
    log,
    now,
  } = deps;
  const stop = new AbortController();
  const tasks = new Set<Promise<void>>();
  const recoveries = new Map<LivePrompt, Recovery>();

  async function linkFoundJob(recovery: Recovery, plan: SubmissionPlan, job: Job): Promise<void> {
    if (recovery.state === 'ended') return lateJobs.cancelWhenFound(recovery.prompt, plan, job);
    recovery.state = 'linking';
    await linkJob(recovery.prompt, plan, job);
  }

  /** True: the prompt has its job, or was refused. */
  async function send(recovery: Recovery, lastResult: JobNotFound): Promise<boolean> {
    const { prompt } = recovery;
    const sent = await submissionRetry.send(prompt, recovery.plan, lastResult);
    if (sent.kind === 'accepted') await linkFoundJob(recovery, sent.plan, sent.job);
    if (sent.kind === 'refused' && recovery.state === 'searching') {
      const error = jobErrorOf(sent.error, sent.refusal, recovery.plan.graph);
      await follower.finishWithoutJob(prompt, { kind: 'failed', error });
    }
    recovery.isEngineDown = sent.kind === 'unknown' && sent.error.engineDown === true;
    if (sent.kind === 'unknown' && sent.isKeyUsed) {
      recovery.isKeyFree = 'no';
      recovery.searchedSinceMs = now();
    }
    if (sent.kind === 'unsent') recovery.plan = sent.plan;
    return sent.kind === 'accepted' || sent.kind === 'refused';
  }

  /** The old key certainly made no job: sends the prompt under a new one. */
  async function sendWithNewKey(recovery: Recovery): Promise<boolean> {
    if (recovery.plan.lacksSecrets || recovery.newKeys++ >= MAX_NEW_KEYS) {
      return abandon(recovery, { kind: 'lost', reason: NEVER_TAKEN });
    }
    const plan = withNewKey(recovery.plan);
    // A process that takes over must know which key may have made a job.
    await ledger.prompts.setIntent(plan.label, toStoredPlan(plan, 'away'));
    Object.assign(recovery, { plan, isKeyFree: 'yes', lastResult: undefined });
    return send(recovery, 'none');
  }

  async function abandon(
    recovery: Recovery,
    ending: { readonly kind: 'lost'; readonly reason: string } | { readonly kind: 'forgotten' },
  ): Promise<true> {
    const { prompt, plan, lastResult } = recovery;
    recovery.state = 'ended';
    if (ending.kind === 'forgotten') await deps.removePrompt(prompt);
    else {
      const { caller, promptId } = prompt;
      const facts = { event: 'submission.abandoned', user: caller.user, promptId };
      log.warn({ ...facts, reason: ending.reason }, 'gave up a submission');
      await follower.finishWithoutJob(prompt, ending);
    }
    if (lastResult?.result !== 'none') lateJobs.cancelWhenFound(prompt, plan);
    return true;
  }

  const actions = {
    wait: async () => false,
    send,
    'send anew': sendWithNewKey,
    forget: (recovery) => abandon(recovery, { kind: 'forgotten' }),
    'not taken': (recovery) => abandon(recovery, { kind: 'lost', reason: NEVER_TAKEN }),
    'not known': (recovery) => abandon(recovery, { kind: 'lost', reason: OUTCOME_UNKNOWN }),
  } as const satisfies Record<
    RecoveryAction | 'wait',
    (recovery: Recovery, lastResult: JobNotFound) => Promise<boolean>
  >;

  /** Searches once and acts on the result; true when the outcome of the prompt is certain. */
  async function searchOnce(recovery: Recovery): Promise<boolean> {
    const searchResult = await submissionRetry.findJob(recovery.prompt, recovery.plan);
    const notFound =
      searchResult === 'engine down' && !recovery.isEngineDown ? 'blind' : searchResult;
    if (typeof notFound === 'object') {
      await linkFoundJob(recovery, recovery.plan, notFound);
      return true;
    }
    if (recovery.state === 'ended') return true;
    const nowMs = now();
    if (recovery.lastResult?.result !== notFound)
      recovery.lastResult = { result: notFound, sinceMs: nowMs };
    const sameForMs = nowMs - recovery.lastResult.sinceMs;
    const searchedForMs = nowMs - recovery.searchedSinceMs;
    const action = nextRecoveryAction(retryPolicy, {
      ...recovery,
      lastResult: notFound,
      unchangedForMs: sameForMs,
      searchedForMs,
    });
    return actions[action](recovery, notFound);
  }

  /** An error is logged and the search goes on: a ledger that is down may be back later. */
  async function searchAndLogErrors(recovery: Recovery): Promise<boolean> {
    try {
      return await searchOnce(recovery);
    } catch (error) {
      if (stop.signal.aborted || error instanceof LeadershipLost) throw error;
      const { promptId } = recovery.prompt;
      const facts = { event: 'submission.recovery_failed', err: error, promptId };
      log.error(facts, 'searching for the job of a submission failed; retrying');
      return false;
    }
  }

  async function cancelRecovery(recovery: Recovery): Promise<void> {
    recovery.state = 'ended';
    recovery.wake.abort();
    lateJobs.cancelWhenFound(recovery.prompt, recovery.plan);
    await follower.finishWithoutJob(recovery.prompt, { kind: 'canceled' });
  }

  async function run(recovery: Recovery): Promise<void> {
    const { prompt, wake } = recovery;
    const { first, last } = retryPolicy.searchMs;
    const signal = AbortSignal.any([stop.signal, wake.signal]);
    for (let waitMs = first; ; waitMs = Math.min(last, waitMs * 1.5)) {
      if (recovery.state === 'ended' || !promptEventLog.isLeader(prompt.key)) return;
      if (prompt.cancelRequested && recovery.state === 'searching') return cancelRecovery(recovery);
      if (await searchAndLogErrors(recovery)) return;
      await delay(withJitter(waitMs), undefined, { signal, ref: false }).catch((error: unknown) => {
        if (!wake.signal.aborted) throw error;
      });
    }
  }

  function createRecovery({
    prompt,
    clientKnows,
    plan,
    isKeyUsed,
    isEngineDown = false,
  }: AmbiguousSubmission): Recovery {
    const wake = new AbortController();
    const isKeyFree = isKeyUsed ? 'no' : 'yes';
    const since = { searchedSinceMs: now(), lastResult: undefined, newKeys: 0, isEngineDown };
    return { prompt, clientKnows, plan, isKeyFree, ...since, state: 'searching', wake };
  }

  return {
    recover(ambiguous) {
      const recovery = createRecovery(ambiguous);
      recoveries.set(ambiguous.prompt, recovery);
      const task = follower
        .appendEntry(ambiguous.prompt, 'sought')
        .then(() => run(recovery))
        .catch((error: unknown) => {
          if (stop.signal.aborted || error instanceof LeadershipLost) return;
          const facts = { event: 'submission.recovery_stopped', err: error };
          log.error(facts, 'stopped searching for the job of a submission');
        })
        .finally(() => {
          tasks.delete(task);
          if (recoveries.get(ambiguous.prompt) === recovery) recoveries.delete(ambiguous.prompt);
        });
      tasks.add(task);
    },
    async withdraw(prompt) {
      const recovery = recoveries.get(prompt);
      if (recovery?.state !== 'searching') return false;
      await cancelRecovery(recovery);
      return true;
    },
    async close() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}

const NEVER_TAKEN = 'the job service never took it';
const OUTCOME_UNKNOWN = 'whether the job service took it could not be found out';
