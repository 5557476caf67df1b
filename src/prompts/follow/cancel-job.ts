import { type Caller, isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { retry } from '../../lib/retry.ts';

export type JobCanceller = ReturnType<typeof createJobCanceller>;

const RETRY_MS = { first: 500, last: 10_000 } as const;
const GIVE_UP_MS = 10 * 60_000;

/** Cancels jobs. Repeats a cancel while the upstream cannot be reached. */
export function createJobCanceller({
  jobs,
  livePrompts,
  log,
  deadlineClock,
}: Pick<PromptContext, 'jobs' | 'livePrompts' | 'log' | 'deadlineClock'>) {
  const stop = new AbortController();

  /** True when nothing is left to do: the job was cancelled, or cannot be. */
  async function requestCancel(prompt: LivePrompt, caller = prompt.caller): Promise<boolean> {
    if (prompt.jobId === null) return true;
    const result = await jobs.cancel(caller, prompt.jobId);
    if (result.ok) {
      if (IS_TERMINAL[result.value.status]) prompt.status = result.value.status;
      return true;
    }
    const { status, code } = result.error;
    // Some services forget a job at once when it is deleted from their queue.
    if (isGone(result.error)) prompt.status = 'expired';
    const facts = { event: 'cancel.refused', user: caller.user, jobId: prompt.jobId, code };
    log.warn(facts, 'the upstream refused a cancel');
    return status < 500 && status !== 429 && status !== 401;
  }

  async function retryUntilDone(prompt: LivePrompt): Promise<void> {
    const deadlineMs = deadlineClock.now() + GIVE_UP_MS;
    await deadlineClock.sleep(RETRY_MS.first, stop.signal);
    // A repeated cancel does no harm, nor does a cancel of an ended job.
    await retry(
      async () =>
        !livePrompts.has(prompt) || deadlineClock.now() > deadlineMs || requestCancel(prompt),
      {
        clock: deadlineClock,
        waitMs: { ...RETRY_MS, first: RETRY_MS.first * 2 },
        signal: stop.signal,
        onError: (error) => noteFailure(error, prompt),
      },
    );
  }

  function noteFailure(error: unknown, { caller: { user } }: LivePrompt): void {
    const facts = { event: 'cancel.retry_failed', err: error, user };
    log.error(facts, 'could not cancel a job; trying again');
  }

  function retryInBackground(prompt: LivePrompt): void {
    retryUntilDone(prompt).catch((error: unknown) => {
      if (!stop.signal.aborted) noteFailure(error, prompt);
    });
  }

  return {
    /**
     * Cancels the job as `caller` (default: the user who submitted it). Resolves after the first
     * attempt; further attempts run in the background.
     */
    async cancelJob(prompt: LivePrompt, caller?: Caller): Promise<void> {
      if (await requestCancel(prompt, caller)) return;
      retryInBackground(prompt);
    },
    /** Cancels a job in the background, for a cancel that no caller waits for. */
    cancelInBackground(prompt: LivePrompt): void {
      void requestCancel(prompt)
        .catch((error: unknown) => noteFailure(error, prompt))
        .then((isDone) => isDone || retryInBackground(prompt));
    },
    close: () => stop.abort(),
  };
}
