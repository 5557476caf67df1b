import type { LivePrompt } from '../live-prompts.ts';
import { byQueueOrder } from '../queue-order.ts';
import type { SubmissionPlan } from './plan.ts';

/** A prompt that waits until the upstream has capacity; its plan is in the ledger. */
export type QueuedSubmission = {
  readonly prompt: LivePrompt;
  /** The plan gets another key when an attempt has used up the old one. */
  plan: SubmissionPlan;
  /** `nothing`: the process died before it answered the client. */
  readonly clientKnows: 'accepted' | 'nothing';
  /** True when an earlier process may have sent the plan, with an unknown outcome. */
  readonly mayHaveBeenSent: boolean;
};

/** A slot in the outbox, held until the submission is added or given up. */
export type Reservation = { release(): void };

/** The waiting submissions of one user, in the order they run. */
export class OutboxQueue {
  #submissions: readonly QueuedSubmission[] = [];
  /** The submission that is being sent upstream, or whose result is being recorded. */
  sending: QueuedSubmission | undefined;
  /** The number of attempts in a row that did not reach the upstream. */
  failures = 0;

  get first(): QueuedSubmission | undefined {
    return this.#submissions[0];
  }

  get length(): number {
    return this.#submissions.length;
  }

  add(submission: QueuedSubmission): void {
    this.#submissions = [...this.#submissions, submission].toSorted((a, b) =>
      byQueueOrder(a.prompt, b.prompt),
    );
  }

  remove(submission: QueuedSubmission): void {
    this.#submissions = this.#submissions.filter((other) => other !== submission);
  }

  find(prompt: LivePrompt): QueuedSubmission | undefined {
    return this.#submissions.find((submission) => submission.prompt === prompt);
  }

  /** True when the prompt runs before the user's prompts that wait in other processes. */
  isAheadOf(others: ReadonlySet<LivePrompt>, prompt: LivePrompt): boolean {
    const own = new Set(this.#submissions.map((submission) => submission.prompt));
    return [...others].every((other) => own.has(other) || byQueueOrder(prompt, other) < 0);
  }
}
