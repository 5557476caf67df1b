import { type Caller, isGone } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { retry } from '../../lib/retry.ts';

const RETRY_MS = { first: 500, last: 10_000 } as const;
const GIVE_UP_MS = 10 * 60_000;

/** Cancels jobs. Repeats a cancel while the upstream cannot be reached. */
export class JobCanceller {
  readonly #ports: PromptPorts;
  readonly #stop = new AbortController();

  constructor(ports: PromptPorts) {
    this.#ports = ports;
  }

  /**
   * Cancels the job as `caller` (default: the user who submitted it). Resolves after the first
   * attempt; further attempts run in the background.
   */
  async cancelJob(prompt: LivePrompt, caller?: Caller): Promise<void> {
    if (!(await this.#requestCancel(prompt, caller)))
      this.cancelInBackground(prompt, RETRY_MS.first);
  }

  /** Cancels a job in the background, for a cancel that no caller waits for. */
  cancelInBackground(prompt: LivePrompt, afterMs = 0): void {
    const { frames, policy } = this.#ports;
    const clock = policy.deadlineClock;
    const { signal } = this.#stop;
    const deadlineMs = clock.now() + GIVE_UP_MS;
    const isDone = async (): Promise<boolean> =>
      !frames.livePrompts.has(prompt) || clock.now() > deadlineMs || this.#requestCancel(prompt);
    const onError = (err: unknown): void => {
      const facts = { event: 'cancel.retry_failed', err, user: prompt.caller.user };
      frames.log.error(facts, 'could not cancel a job; trying again');
    };
    const waitMs = { ...RETRY_MS, first: Math.max(RETRY_MS.first, afterMs * 2) };
    // A repeated cancel does no harm, nor does a cancel of an ended job.
    const cancel = () => retry(isDone, { clock, waitMs, signal, onError });
    const cancelled = clock.sleep(afterMs, signal).then(cancel);
    // Rejects only when this process closes.
    cancelled.catch(() => {});
  }

  close(): void {
    this.#stop.abort();
  }

  /** True when nothing is left to do: the job was cancelled, or cannot be. */
  async #requestCancel(prompt: LivePrompt, caller = prompt.caller): Promise<boolean> {
    const { jobs, frames } = this.#ports;
    if (prompt.jobId === null) return true;
    const result = await jobs.api.cancel(caller, prompt.jobId);
    if (result.ok) {
      if (IS_TERMINAL[result.value.status]) prompt.status = result.value.status;
      return true;
    }
    const { status, code } = result.error;
    // Some services forget a job at once when it is deleted from their queue.
    if (isGone(result.error)) prompt.status = 'expired';
    const facts = { event: 'cancel.refused', user: caller.user, jobId: prompt.jobId, code };
    frames.log.warn(facts, 'the upstream refused a cancel');
    return status < 500 && status !== 429 && status !== 401;
  }
}
