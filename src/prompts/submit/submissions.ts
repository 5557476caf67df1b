import { BackgroundTasks } from '../../lib/concurrency.ts';
import { reached } from '../../lib/crash-point.ts';
import { retry } from '../../lib/retry.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { LeadershipLost } from '../prompt-event-log.ts';
import { serverStalled } from '../../translate/prompt-refusal.ts';
import { type Accepted, OUTBOX_FULL, toV1Error } from './answer.ts';
import { toRefusal } from './attempt.ts';
import { type SubmissionDraft, recordPrompt, toPromptRow } from './draft.ts';
import type { FollowParts } from './link-job.ts';
import { Outbox } from './outbox.ts';
import { PendingSubmission } from './pending-submission.ts';
import type { SubmissionPlan } from './plan.ts';
import { SubmissionActions } from './submission-actions.ts';
import { type Action, type Input, type SubmissionState, nextAction } from './submission-table.ts';

/** A prompt that continues after its `POST`: of another process, or whose job was lost. */
export type ContinuedSubmission = {
  readonly prompt: LivePrompt;
  readonly plan: SubmissionPlan;
  readonly state: Exclude<SubmissionState, 'submitting' | 'done'>;
  readonly waitMs?: number;
};

/**
 * Brings prompts to their jobs. Each prompt has a loop: the table gives the next action for what is
 * known, and the action brings the next input. The same loop runs in one process and in several:
 * only the leader of a prompt runs it.
 */
export class Submissions {
  readonly #ports: PromptPorts;
  readonly outbox: Outbox;
  readonly #actions: SubmissionActions;
  readonly #tasks = new BackgroundTasks();
  readonly #pending = new Map<string, PendingSubmission>();
  #isClosed = false;

  constructor(ports: PromptPorts, parts: FollowParts) {
    this.#ports = ports;
    this.outbox = new Outbox(ports.frames.livePrompts, ports.policy);
    this.#actions = new SubmissionActions(ports, parts, this.outbox);
  }

  /** Submits a checked prompt. Resolves with the answer for its client; rejects with a `V1Error`. */
  async submit(draft: SubmissionDraft): Promise<Accepted> {
    const { user } = draft.caller;
    const isBehind = this.outbox.hasWaiting(user);
    if (isBehind && this.outbox.isFull(user)) throw toV1Error(toRefusal(OUTBOX_FULL, draft.plan));
    const state = isBehind ? 'outbox' : 'submitting';
    const nowMs = this.#ports.policy.deadlineClock.now();
    const submission = new PendingSubmission({ draft }, draft.plan, state, nowMs);
    if (isBehind) this.outbox.add(submission);
    await this.#record(submission, draft);
    return new Promise((resolve, reject) => {
      submission.client = { resolve, reject };
      void this.#start(submission);
    });
  }

  /** Continues a prompt. Resolves when all processes know that it waits. */
  async continue({ prompt, plan, state, waitMs = 0 }: ContinuedSubmission): Promise<void> {
    const nowMs = this.#ports.policy.deadlineClock.now();
    const submission = new PendingSubmission({ prompt }, plan, state, nowMs);
    const mayBeSent = state !== 'unknown' && !plan.lacksSecrets && !prompt.cancelRequested;
    if (mayBeSent) this.outbox.add(submission);
    submission.firstWaitMs = waitMs;
    await this.#start(submission);
  }

  /** Ends a prompt that has no job. False: it may have one, or is about to get it. */
  async cancel({ key }: LivePrompt): Promise<boolean> {
    const submission = this.#pending.get(key);
    if (!submission?.prompt || submission.isBusy || submission.state === 'done') return false;
    submission.wake.abort();
    await submission.ended.promise;
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { wake } of this.#pending.values()) wake.abort();
    await this.#tasks.close();
  }

  /** Records the prompt before anything is sent. */
  async #record(submission: PendingSubmission, draft: SubmissionDraft): Promise<void> {
    const isBehind = submission.state === 'outbox';
    try {
      await recordPrompt(toPromptRow(draft, submission.state), this.#ports);
    } catch (error) {
      this.outbox.remove(submission);
      // Another process took the prompt over before it was recorded.
      throw error instanceof LeadershipLost ? toV1Error(serverStalled()) : error;
    }
    submission.isFirstSend = !isBehind;
    if (!isBehind) reached('after-intent');
  }

  /** Starts the loop. Resolves when the prompt is in the outbox, if it waits there. */
  #start(submission: PendingSubmission): Promise<void> {
    this.#pending.set(submission.key, submission);
    const entered = this.outbox.has(submission)
      ? this.#actions.enterOutbox(submission)
      : Promise.resolve();
    void this.#tasks.run(
      () => this.#runToEnd(submission, entered),
      () => {},
    );
    return entered;
  }

  async #runToEnd(submission: PendingSubmission, entered: Promise<void>): Promise<void> {
    try {
      await entered;
      await this.#run(submission);
    } catch (error) {
      if (this.#isClosed) submission.client?.reject(error);
      else await this.#actions.stopped(submission, error);
    } finally {
      if (this.#pending.get(submission.key) === submission) this.#pending.delete(submission.key);
      submission.ended.resolve();
    }
  }

  async #run(submission: PendingSubmission): Promise<void> {
    const { eventLog } = this.#ports.records;
    const { pace, clock, deadlineClock } = this.#ports.policy;
    for (let next: Input | undefined = 'due'; next !== undefined;) {
      const { state, key, plan, createdAtMs, user } = submission;
      if (this.#isClosed || (state !== 'done' && !eventLog.isLeader(key)))
        throw new LeadershipLost();
      const input = isCancelled(submission, next) ? 'cancelled' : next;
      const conditions = submission.facts.conditions(pace, {
        nowMs: deadlineClock.now(),
        ageMs: clock.now() - createdAtMs,
        lacksSecrets: plan.lacksSecrets,
        isOutboxFull: this.outbox.isFull(user),
      });
      next = await this.#perform(submission, nextAction(state, input, conditions), input);
    }
  }

  /**
   * Performs an action until it succeeds: a ledger that is down, or has no room, may be back later.
   */
  async #perform(
    submission: PendingSubmission,
    action: Action,
    input: Input,
  ): Promise<Input | undefined> {
    const { deadlineClock: clock, pace } = this.#ports.policy;
    const { signal } = submission.wake;
    let next: Input | undefined;
    const act = async (): Promise<void> => {
      next = await this.#actions.acts[action](submission, input);
    };
    const onError = (error: unknown): void => {
      if (this.#isClosed || signal.aborted || error instanceof LeadershipLost) throw error;
      this.#actions.noteFailure(submission, error);
    };
    try {
      await retry(act, { clock, waitMs: pace.notSentMs, signal, onError });
      return next;
    } catch (error) {
      if (this.#isClosed || !signal.aborted || error instanceof LeadershipLost) throw error;
      return 'cancelled';
    }
  }
}

/** True when the prompt ends now, since its client wants that. A job is linked first. */
function isCancelled({ state, isCancelRequested }: PendingSubmission, input: Input): boolean {
  if (!isCancelRequested || state === 'done') return false;
  return input !== 'accepted' && input !== 'found';
}
