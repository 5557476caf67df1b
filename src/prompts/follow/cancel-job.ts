import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../../observability/log.ts';
import { type Caller, type JobApi, isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { LivePrompts, LivePrompt } from '../live-prompts.ts';

/** Sees to it that a cancel reaches the job, even when the upstream cannot hear it right now. */
export type JobCanceller = {
  /**
   * Resolves after the first try, in the name of who asks (whoever submitted it, when left out);
   * what that could not do is tried on in the background.
   */
  cancelJob(prompt: LivePrompt, caller?: Caller): Promise<void>;
  close(): void;
};

type JobCancellerOptions = {
  readonly jobs: Pick<JobApi, 'cancel'>;
  readonly livePrompts: LivePrompts;
  readonly log: Logger;
  readonly now: () => number;
};

const RETRY_MS = { first: 500, last: 10_000 } as const;
const GIVE_UP_MS = 10 * 60_000;

export function createJobCanceller({
  jobs,
  livePrompts,
  log,
  now,
}: JobCancellerOptions): JobCanceller {
  const stop = new AbortController();

  /** True when there is nothing left to do: asked, or known to be in vain. */
  async function requestCancel(prompt: LivePrompt, caller = prompt.caller): Promise<boolean> {
    if (prompt.jobId === null) return true;
    const result = await jobs.cancel(caller, prompt.jobId);
    if (result.ok) {
      if (IS_TERMINAL[result.value.status]) prompt.status = result.value.status;
      return true;
    }
    const { status, code } = result.error;
    // Some services forget at once what is taken out of their queue.
    if (isGone(result.error)) prompt.status = 'expired';
    log.warn({ user: caller.user, jobId: prompt.jobId, code }, 'cancel was refused');
    return status < 500 && status !== 429 && status !== 401;
  }

  async function retryUntilDone(prompt: LivePrompt): Promise<void> {
    const deadlineMs = now() + GIVE_UP_MS;
    for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
      await delay(waitMs, undefined, { signal: stop.signal, ref: false });
      // A cancel does no harm twice, and none to a job that is over.
      if (!livePrompts.has(prompt) || now() > deadlineMs || (await requestCancel(prompt))) return;
    }
  }

  return {
    async cancelJob(prompt, caller) {
      if (await requestCancel(prompt, caller)) return;
      void retryUntilDone(prompt).catch((error: unknown) => {
        if (!stop.signal.aborted)
          log.error({ err: error, user: prompt.caller.user }, 'cancel could not be pursued');
      });
    },
    close: () => stop.abort(),
  };
}
