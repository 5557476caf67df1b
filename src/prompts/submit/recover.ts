import { BackgroundTasks } from '../../lib/concurrency.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LinkJob } from './link-job.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import type { Follower } from '../follow/follower.ts';
import type { LateJobs } from './late-jobs.ts';
import { failWithoutJob } from './fail-without-job.ts';
import { refusalAsJobError } from './send.ts';
import { withJitter } from './retry-policy.ts';
import { type SubmissionPlan, withNewKey } from './plan.ts';
import { LeadershipLost } from '../prompt-event-log.ts';
import type { SubmissionRetry } from './retry.ts';
import {
  type RecoveryAction,
  type ClientKnows,
  type JobNotFound,
  nextRecoveryAction,
} from './recovery-rules.ts';

/** A prompt whose submission may or may not have made a job. */
export type AmbiguousSubmission = {
  readonly prompt: LivePrompt;
  readonly plan: SubmissionPlan;
  /**
   * The answer that the client got. `accepted`: the plan is sent until the prompt has a job.
   * `unknown`: the client was told that the outcome is unknown. `nothing`: the process died before
   * it answered.
   */
  readonly clientKnows: ClientKnows;
  /**
   * False: the key must not be sent again, since an attempt certainly reached the service, the
   * client wants to cancel, or the secrets are gone.
   */
  readonly mayResend: boolean;
  /** True when the service answered every request that it cannot reach its engine. */
  readonly isEngineDown?: boolean;
};

export type SubmissionRecoveryOptions = PromptContext & {
  readonly submissionRetry: SubmissionRetry;
  readonly follower: Follower;
  readonly linkJob: LinkJob;
  readonly lateJobs: LateJobs;
};

type Recovery = Pick<AmbiguousSubmission, 'prompt' | 'clientKnows'> & {
  plan: SubmissionPlan;
  mayResend: boolean;
  /** The time since which only searching is possible. */
  searchedSinceMs: number;
  lastResult: { readonly result: JobNotFound; readonly sinceMs: number } | undefined;
  newKeys: number;
  /** True when the log of the prompt says that its job is searched for. */
  isRecorded: boolean;
  isEngineDown: boolean;
  /** `linking`: the job was found. `ended`: the prompt was cancelled or given up. */
  state: 'searching' | 'linking' | 'ended';
  readonly wake: AbortController;
};

type Act = (recovery: Recovery, lastResult: JobNotFound) => Promise<boolean>;

/** A prompt that used up more new keys without a job gets no further one. */
const MAX_NEW_KEYS = 3;

/** Searches for the jobs of ambiguous submissions until they are found or given up. */
export class SubmissionRecovery {
  readonly #options: SubmissionRecoveryOptions;
  readonly #tasks = new BackgroundTasks();
  readonly #recoveries = new Map<LivePrompt, Recovery>();

  /** The actions. Each returns true when the outcome of the prompt is certain. */
  readonly #actions = {
    wait: async () => false,
    send: (recovery, lastResult) => this.#send(recovery, lastResult),
    'send with new key': (recovery) => this.#sendWithNewKey(recovery),
    remove: (recovery) => this.#remove(recovery),
    'not taken': (recovery) => this.#giveUp(recovery, NEVER_TAKEN),
    'not known': (recovery) => this.#giveUp(recovery, OUTCOME_UNKNOWN),
  } as const satisfies Record<RecoveryAction | 'wait', Act>;

  constructor(options: SubmissionRecoveryOptions) {
    this.#options = options;
  }

  recover(ambiguous: AmbiguousSubmission): void {
    const { prompt } = ambiguous;
    const recovery = createRecovery(ambiguous, this.#options.deadlineClock.now());
    this.#recoveries.set(prompt, recovery);
    void this.#tasks.run(
      () => this.#recover(recovery),
      (error) => {
        if (error instanceof LeadershipLost) return;
        const facts = { event: 'submission.recovery_stopped', err: error };
        this.#options.log.error(facts, 'stopped searching for the job of a submission');
        this.#options.promptEventLog.stopLeading(prompt.key);
      },
    );
  }

  async #recover(recovery: Recovery): Promise<void> {
    const { prompt } = recovery;
    try {
      await this.#searchUntilCertain(recovery);
    } finally {
      if (this.#recoveries.get(prompt) === recovery) this.#recoveries.delete(prompt);
    }
  }

  /**
   * Ends a prompt whose job is searched for. False: no search is running, or the job was just
   * found.
   */
  async cancel(prompt: LivePrompt): Promise<boolean> {
    const recovery = this.#recoveries.get(prompt);
    if (recovery?.state !== 'searching') return false;
    await this.#cancel(recovery);
    return true;
  }

  async close(): Promise<void> {
    await this.#tasks.close();
  }

  async #searchUntilCertain(recovery: Recovery): Promise<void> {
    const { promptEventLog, retryPolicy, deadlineClock } = this.#options;
    const { prompt, wake } = recovery;
    const { first, last } = retryPolicy.searchMs;
    const signal = AbortSignal.any([this.#tasks.signal, wake.signal]);
    for (let waitMs = first; ; waitMs = Math.min(last, waitMs * 1.5)) {
      this.#tasks.signal.throwIfAborted();
      if (recovery.state === 'ended' || !promptEventLog.isLeader(prompt.key)) return;
      if (prompt.cancelRequested && recovery.state === 'searching') return this.#cancel(recovery);
      if (await this.#searchAndLogErrors(recovery)) return;
      await deadlineClock.sleep(withJitter(waitMs), signal).catch((error: unknown) => {
        if (!wake.signal.aborted) throw error;
      });
    }
  }

  /** Searches, and logs an error instead of ending: a ledger that is down may be back later. */
  async #searchAndLogErrors(recovery: Recovery): Promise<boolean> {
    try {
      return (await this.#isToSearch(recovery)) && (await this.#searchOnce(recovery));
    } catch (error) {
      if (this.#tasks.signal.aborted || error instanceof LeadershipLost) throw error;
      const { promptId } = recovery.prompt;
      const facts = { event: 'submission.recovery_failed', err: error, promptId };
      this.#options.log.error(facts, 'searching for the job of a submission failed; retrying');
      return false;
    }
  }

  /**
   * Records that the job is searched for, before the first search. False: another process leads the
   * prompt, or the prompt has ended.
   */
  async #isToSearch(recovery: Recovery): Promise<boolean> {
    recovery.isRecorded ||= await this.#options.follower.appendEntry(recovery.prompt, 'sought');
    return recovery.isRecorded && recovery.state !== 'ended';
  }

  /** Searches once and acts on the result; true when the outcome of the prompt is certain. */
  async #searchOnce(recovery: Recovery): Promise<boolean> {
    const found = await this.#options.submissionRetry.findJob(recovery.prompt, recovery.plan);
    if (typeof found === 'object') {
      await this.#link(recovery, recovery.plan, found);
      return true;
    }
    if (recovery.state === 'ended') return true;
    const result = found === 'engine down' && !recovery.isEngineDown ? 'no answer' : found;
    return this.#actions[this.#nextAction(recovery, result)](recovery, result);
  }

  #nextAction(recovery: Recovery, result: JobNotFound): RecoveryAction | 'wait' {
    const { retryPolicy, deadlineClock } = this.#options;
    const nowMs = deadlineClock.now();
    if (recovery.lastResult?.result !== result) recovery.lastResult = { result, sinceMs: nowMs };
    return nextRecoveryAction(retryPolicy, {
      clientKnows: recovery.clientKnows,
      mayResend: recovery.mayResend,
      lastResult: result,
      unchangedForMs: nowMs - recovery.lastResult.sinceMs,
      searchedForMs: nowMs - recovery.searchedSinceMs,
    });
  }

  async #link(recovery: Recovery, plan: SubmissionPlan, job: Job): Promise<void> {
    const { lateJobs, linkJob } = this.#options;
    if (recovery.state === 'ended') return lateJobs.cancelWhenFound(recovery.prompt, plan, job);
    recovery.state = 'linking';
    await linkJob(recovery.prompt, plan, job);
  }

  /** Sends the plan again. True: the prompt has its job, or was refused. */
  async #send(recovery: Recovery, lastResult: JobNotFound): Promise<boolean> {
    const { submissionRetry, follower, deadlineClock } = this.#options;
    const { prompt } = recovery;
    const sent = await submissionRetry.send(prompt, recovery.plan, lastResult);
    if (sent.kind === 'accepted') await this.#link(recovery, sent.plan, sent.job);
    if (sent.kind === 'refused' && recovery.state === 'searching') {
      recovery.state = 'ended';
      await failWithoutJob(follower, recovery, refusalAsJobError(sent));
      this.#cancelLateJob(recovery);
    }
    recovery.isEngineDown = sent.kind === 'unknown' && sent.error.engineDown === true;
    if (sent.kind === 'unknown' && !sent.mayResend) {
      recovery.mayResend = false;
      recovery.searchedSinceMs = deadlineClock.now();
    }
    if ('plan' in sent) recovery.plan = sent.plan;
    return sent.kind === 'accepted' || sent.kind === 'refused';
  }

  /** Sends the prompt under a new key, since the old key certainly made no job. */
  async #sendWithNewKey(recovery: Recovery): Promise<boolean> {
    if (recovery.plan.lacksSecrets || recovery.newKeys++ >= MAX_NEW_KEYS) {
      return this.#giveUp(recovery, NEVER_TAKEN);
    }
    const plan = withNewKey(recovery.plan);
    Object.assign(recovery, { plan, mayResend: true, lastResult: undefined });
    return this.#send(recovery, 'none');
  }

  async #remove(recovery: Recovery): Promise<true> {
    recovery.state = 'ended';
    await this.#options.follower.remove(recovery.prompt);
    this.#cancelLateJob(recovery);
    return true;
  }

  async #giveUp(recovery: Recovery, reason: string): Promise<true> {
    const { follower, log } = this.#options;
    const { caller, promptId } = recovery.prompt;
    recovery.state = 'ended';
    const facts = { event: 'submission.abandoned', user: caller.user, promptId, reason };
    log.warn(facts, 'gave up a submission');
    await follower.finishWithoutJob(recovery.prompt, { kind: 'lost', reason });
    this.#cancelLateJob(recovery);
    return true;
  }

  #cancelLateJob({ prompt, plan, lastResult }: Recovery): void {
    if (lastResult?.result !== 'none') this.#options.lateJobs.cancelWhenFound(prompt, plan);
  }

  async #cancel(recovery: Recovery): Promise<void> {
    const { lateJobs, follower } = this.#options;
    recovery.state = 'ended';
    recovery.wake.abort();
    lateJobs.cancelWhenFound(recovery.prompt, recovery.plan);
    await follower.finishWithoutJob(recovery.prompt, { kind: 'canceled' });
  }
}

function createRecovery(ambiguous: AmbiguousSubmission, nowMs: number): Recovery {
  return {
    isEngineDown: false,
    ...ambiguous,
    searchedSinceMs: nowMs,
    lastResult: undefined,
    newKeys: 0,
    isRecorded: false,
    state: 'searching',
    wake: new AbortController(),
  };
}

const NEVER_TAKEN = 'the job service never took it';
const OUTCOME_UNKNOWN = 'whether the job service took it could not be found out';
