import type { Clock } from '../lib/clock.ts';
import { reached } from '../lib/crash-point.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type LivePrompts, type LivePrompt, hasEnded } from './live-prompts.ts';
import type { Follower } from './follow/follower.ts';
import type { Outbox } from './submit/outbox.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import type { JobCanceller } from './follow/cancel-job.ts';
import type { SubmissionRecovery } from './submit/recover.ts';

/**
 * Requests the end of prompts, whichever process owns them. Their followers report what happened.
 */
export type Cancel = {
  readonly cancel: (prompts: readonly LivePrompt[], caller: Caller) => Promise<void>;
  /** Another process has recorded a cancel request; this process may own the prompt. */
  readonly cancelRequested: (key: string) => void;
};

type CancelOptions = {
  readonly ledger: { readonly prompts: Pick<Ledger['prompts'], 'askCancel'> };
  readonly promptEventLog: Pick<PromptEventLog, 'isLeader' | 'requestCancel'>;
  readonly livePrompts: Pick<LivePrompts, 'has'>;
  readonly outbox: Pick<Outbox, 'withdraw'>;
  readonly submissionRecovery: Pick<SubmissionRecovery, 'withdraw'>;
  readonly follower: Pick<Follower, 'find' | 'finishWithoutJob'>;
  readonly jobCanceller: Pick<JobCanceller, 'cancelJob'>;
  /** For times that are recorded. */
  readonly clock: Pick<Clock, 'now'>;
  /** For deadlines. */
  readonly deadlineClock: Clock;
};

/**
 * How long an answer waits until another process has removed a prompt from its outbox, and for the
 * history of a job that has ended: v1 answers after removing it.
 */
const WAIT_MS = { interval: 10, max: 2000 } as const;

export function createCancel(deps: CancelOptions): Cancel {
  const {
    ledger,
    promptEventLog,
    livePrompts,
    outbox,
    submissionRecovery,
    follower,
    jobCanceller,
    clock,
    deadlineClock,
  } = deps;

  async function waitWhile(isPending: () => boolean): Promise<void> {
    const deadlineMs = deadlineClock.now() + WAIT_MS.max;
    while (isPending() && deadlineClock.now() < deadlineMs)
      await deadlineClock.sleep(WAIT_MS.interval);
  }

  async function cancelOne(prompt: LivePrompt, caller: Caller): Promise<void> {
    prompt.cancelRequested = true;
    await ledger.prompts.askCancel(prompt.key, clock.now());
    reached('after-cancel-asked');
    return promptEventLog.isLeader(prompt.key)
      ? cancelOwned(prompt, caller)
      : cancelRemote(prompt, caller);
  }

  async function cancelOwned(prompt: LivePrompt, caller: Caller): Promise<void> {
    if (outbox.withdraw(prompt)) return follower.finishWithoutJob(prompt, { kind: 'canceled' });
    if (await submissionRecovery.withdraw(prompt)) return;
    // Without a job the submission is in progress: the process that learns of the job sees the
    // request.
    await jobCanceller.cancelJob(prompt, caller);
  }

  /** Without a job only the owner can act; with a job any process can cancel it. */
  async function cancelRemote(prompt: LivePrompt, caller: Caller): Promise<void> {
    promptEventLog.requestCancel(prompt.key);
    await waitWhile(() => prompt.isInOutbox && livePrompts.has(prompt));
    await jobCanceller.cancelJob(prompt, caller);
  }

  /** A job that runs on for a while does so in v1, too. */
  async function waitUntilRecorded(prompts: readonly LivePrompt[]): Promise<void> {
    const ended = prompts.filter(hasEnded);
    await waitWhile(() => ended.some((prompt) => livePrompts.has(prompt)));
  }

  return {
    async cancel(prompts, caller) {
      await Promise.all(prompts.map((prompt) => cancelOne(prompt, caller)));
      await waitUntilRecorded(prompts);
    },
    cancelRequested(key) {
      const prompt = follower.find(key);
      if (!prompt) return;
      prompt.cancelRequested = true;
      if (!promptEventLog.isLeader(key)) return;
      // A service may answer that a job has ended and send no event: the owning process asks.
      void cancelOwned(prompt, prompt.caller);
    },
  };
}
