import { reached } from '../lib/crash-point.ts';
import type { Caller } from '../protocol/job-api.ts';
import type { LivePrompt } from './live-prompt.ts';
import { hasEnded } from './live-prompts.ts';
import { isInOutbox } from './pending-reason.ts';
import type { PromptParts } from './take-over-prompt.ts';
import type { PromptPorts } from './ports.ts';

/**
 * How long a cancel is awaited before the answer: until another process has removed the prompt from
 * its outbox, or until the history of the ended job is written. v1 answers after the removal.
 */
const WAIT_MS = { interval: 10, max: 2000 } as const;

/** Requests the end of these prompts. Resolves when they have ended, or after a limited time. */
export type Cancel = (prompts: readonly LivePrompt[], caller: Caller) => Promise<void>;

/**
 * Requests the end of prompts, in whichever process leads them. Their followers report the result.
 */
export class PromptCanceller {
  readonly #ports: PromptPorts;
  readonly #parts: PromptParts;

  constructor(ports: PromptPorts, parts: PromptParts) {
    this.#ports = ports;
    this.#parts = parts;
  }

  readonly cancel: Cancel = async (prompts, caller) => {
    await Promise.all(prompts.map((prompt) => this.#cancelOne(prompt, caller)));
    // A job that goes on running after a cancel does so in v1, too.
    const ended = prompts.filter(hasEnded);
    await this.#waitWhile(() => ended.some((prompt) => this.#isLive(prompt)));
  };

  /**
   * Cancels the prompt if this process leads it: another process has recorded a cancel request.
   */
  cancelRequested(key: string): void {
    const { follower, jobCanceller } = this.#parts;
    const { frames, records } = this.#ports;
    const prompt = follower.find(key);
    if (!prompt) return;
    prompt.cancelRequested = true;
    if (!records.eventLog.isLeader(key)) return;
    // A service may answer that a job has ended and send no event, so the leader asks the service.
    this.#cancelLed(prompt, prompt.caller).catch((error: unknown) => {
      const { promptId, caller } = prompt;
      const facts = { event: 'cancel.failed', err: error, user: caller.user, promptId };
      frames.log.error(facts, 'could not do a cancel that another process recorded');
      jobCanceller.cancelInBackground(prompt);
    });
  }

  async #cancelOne(prompt: LivePrompt, caller: Caller): Promise<void> {
    const { records, policy } = this.#ports;
    const { key } = prompt;
    prompt.cancelRequested = true;
    await records.prompts.askCancel(key, policy.clock.now());
    reached('after-cancel-asked');
    // Recorded before the answer, since the next call of this client may come to any process.
    await records.eventLog.requestCancel({ key, user: prompt.caller.user });
    return records.eventLog.isLeader(key)
      ? this.#cancelLed(prompt, caller)
      : this.#cancelRemote(prompt, caller);
  }

  async #cancelLed(prompt: LivePrompt, caller: Caller): Promise<void> {
    if (await this.#parts.submissions.cancel(prompt)) return;
    // A prompt without a job is being submitted: the process that gets its job sees the request.
    await this.#parts.jobCanceller.cancelJob(prompt, caller);
  }

  /**
   * A prompt without a job can be ended by its leader only; a job can be cancelled by any process.
   */
  async #cancelRemote(prompt: LivePrompt, caller: Caller): Promise<void> {
    await this.#waitWhile(() => isInOutbox(prompt) && this.#isLive(prompt));
    await this.#parts.jobCanceller.cancelJob(prompt, caller);
  }

  #isLive(prompt: LivePrompt): boolean {
    return this.#ports.frames.livePrompts.has(prompt);
  }

  async #waitWhile(isPending: () => boolean): Promise<void> {
    const { deadlineClock: clock } = this.#ports.policy;
    const deadlineMs = clock.now() + WAIT_MS.max;
    while (isPending() && clock.now() < deadlineMs) await clock.sleep(WAIT_MS.interval);
  }
}
