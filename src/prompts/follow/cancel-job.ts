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
    if (await this.#requestCancel(prompt, caller)) return;
    this.#retryInBackground(prompt);
  }

  /** Cancels a job in the background, for a cancel that no caller waits for. */
  cancelInBackground(prompt: LivePrompt): void {
    void this.#requestCancel(prompt)
      .catch((error: unknown) => this.#noteFailure(error, prompt))
      .then((isDone) => isDone || this.#retryInBackground(prompt));
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

  async #retryUntilDone(prompt: LivePrompt): Promise<void> {
    const { frames, policy } = this.#ports;
    const clock = policy.deadlineClock;
    const { signal } = this.#stop;
    const deadlineMs = clock.now() + GIVE_UP_MS;
    await clock.sleep(RETRY_MS.first, signal);
    const isDone = async (): Promise<boolean> =>
      !frames.livePrompts.has(prompt) || clock.now() > deadlineMs || this.#requestCancel(prompt);
    const waitMs = { ...RETRY_MS, first: RETRY_MS.first * 2 };
    const onError = (error: unknown): void => this.#noteFailure(error, prompt);
    // A repeated cancel does no harm, nor does a cancel of an ended job.
    await retry(isDone, { clock, waitMs, signal, onError });
  }

  #noteFailure(error: unknown, { caller: { user } }: LivePrompt): void {
    const facts = { event: 'cancel.retry_failed', err: error, user };
    this.#ports.frames.log.error(facts, 'could not cancel a job; trying again');
  }

  #retryInBackground(prompt: LivePrompt): void {
    this.#retryUntilDone(prompt).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#noteFailure(error, prompt);
    });
  }
}
