import type { PromptContext } from './context.ts';
import { reached } from '../lib/crash-point.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type LivePrompt, hasEnded } from './live-prompts.ts';
import type { Follower } from './follow/follower.ts';
import { isInOutbox } from './pending-reason.ts';
import type { JobCanceller } from './follow/cancel-job.ts';
import type { Submissions } from './submit/submissions.ts';

export type Cancel = ReturnType<typeof createCancel>;

type CancelOptions = PromptContext & {
  readonly submissions: Submissions;
  readonly follower: Follower;
  readonly jobCanceller: JobCanceller;
};

/**
 * How long a cancel is awaited before the answer: until another process has removed the prompt from
 * its outbox, or until the history of the ended job is written. v1 answers after the removal.
 */
const WAIT_MS = { interval: 10, max: 2000 } as const;

/**
 * Requests the end of prompts, in whichever process leads them. Their followers report the result.
 */
export function createCancel(options: CancelOptions) {
  const { ledger, promptEventLog, livePrompts, follower, jobCanceller, deadlineClock } = options;

  async function waitWhile(isPending: () => boolean): Promise<void> {
    const deadlineMs = deadlineClock.now() + WAIT_MS.max;
    while (isPending() && deadlineClock.now() < deadlineMs)
      await deadlineClock.sleep(WAIT_MS.interval);
  }

  async function cancelOne(prompt: LivePrompt, caller: Caller): Promise<void> {
    prompt.cancelRequested = true;
    await ledger.prompts.askCancel(prompt.key, options.clock.now());
    reached('after-cancel-asked');
    // Recorded before the answer, since the next call of this client may come to any process.
    await promptEventLog.requestCancel({ key: prompt.key, user: prompt.caller.user });
    return promptEventLog.isLeader(prompt.key)
      ? cancelLed(prompt, caller)
      : cancelRemote(prompt, caller);
  }

  async function cancelLed(prompt: LivePrompt, caller: Caller): Promise<void> {
    if (await options.submissions.cancel(prompt)) return;
    // A prompt without a job is being submitted: the process that gets its job sees the request.
    await jobCanceller.cancelJob(prompt, caller);
  }

  /**
   * A prompt without a job can be ended by its leader only; a job can be cancelled by any process.
   */
  async function cancelRemote(prompt: LivePrompt, caller: Caller): Promise<void> {
    await waitWhile(() => isInOutbox(prompt) && livePrompts.has(prompt));
    await jobCanceller.cancelJob(prompt, caller);
  }

  /** Waits for a limited time: a job that goes on running after a cancel does so in v1, too. */
  async function waitUntilRecorded(prompts: readonly LivePrompt[]): Promise<void> {
    const ended = prompts.filter(hasEnded);
    await waitWhile(() => ended.some((prompt) => livePrompts.has(prompt)));
  }

  return {
    cancel: async (prompts: readonly LivePrompt[], caller: Caller): Promise<void> => {
      await Promise.all(prompts.map((prompt) => cancelOne(prompt, caller)));
      await waitUntilRecorded(prompts);
    },
    /**
     * Cancels the prompt if this process leads it: another process has recorded a cancel request.
     */
    cancelRequested: (key: string): void => {
      const prompt = follower.find(key);
      if (!prompt) return;
      prompt.cancelRequested = true;
      if (!promptEventLog.isLeader(key)) return;
      // A service may answer that a job has ended and send no event, so the leader asks the
      // service.
      cancelLed(prompt, prompt.caller).catch((error: unknown) => {
        const { promptId, caller } = prompt;
        const facts = { event: 'cancel.failed', err: error, user: caller.user, promptId };
        options.log.error(facts, 'could not do a cancel that another process recorded');
        jobCanceller.cancelInBackground(prompt);
      });
    },
  };
}
