import { type Deferred, createDeferred } from '../../lib/concurrency.ts';
import type { Caller } from '../../protocol/job-api.ts';
import type { NodeErrors } from '../../protocol/v1.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { Accepted } from './answer.ts';
import type { FailedAttempt } from './attempt.ts';
import type { SubmissionDraft } from './draft.ts';
import type { SubmissionPlan } from './plan.ts';
import { SubmissionFacts } from './submission-facts.ts';
import type { SubmissionState } from './submission-table.ts';

/** The client that waits for the answer to its `POST`. */
export type WaitingClient = {
  readonly resolve: (answer: Accepted) => void;
  readonly reject: (error: unknown) => void;
};

/** A prompt, live or not accepted yet. */
type Source = { readonly draft: SubmissionDraft } | { readonly prompt: LivePrompt };

/** A prompt on its way to its job, and what is known of its submission. */
export class PendingSubmission {
  state: SubmissionState;
  plan: SubmissionPlan;
  readonly facts: SubmissionFacts;
  readonly draft: SubmissionDraft | undefined;
  readonly #source: SubmissionDraft | LivePrompt;
  /** `undefined`: no client knows the prompt. */
  prompt: LivePrompt | undefined;
  client: WaitingClient | undefined;
  /** True until the first send of a new prompt: the insertion of the prompt has recorded its plan. */
  isFirstSend = false;
  /** The last attempt, unless it made a job. */
  failedAttempt: FailedAttempt | undefined;
  foundJob: Job | undefined;
  /** The errors of outputs that the plan lacks. */
  nodeErrors: NodeErrors = {};
  /** The wait before the first action. */
  firstWaitMs = 0;
  /** The wait before the next search, which grows. */
  searchWaitMs = 0;
  /** True when the log of the prompt says that its job is searched for. */
  isSought = false;
  /** True while the prompt cannot be cancelled here: it is being sent, linked or ended. */
  isBusy = false;
  /** A call that was left when the prompt was cancelled. It may still bring a job. */
  leftCall: Promise<Job | undefined> | undefined;
  /** Aborted to end a wait: the prompt is cancelled, or the server closes. */
  wake = new AbortController();
  readonly ended: Deferred = createDeferred();

  constructor(source: Source, plan: SubmissionPlan, state: SubmissionState, nowMs: number) {
    this.draft = 'draft' in source ? source.draft : undefined;
    this.prompt = 'prompt' in source ? source.prompt : undefined;
    this.#source = 'draft' in source ? source.draft : source.prompt;
    this.plan = plan;
    this.state = state;
    const mayHaveJob = state !== 'outbox' && this.draft === undefined;
    this.facts = new SubmissionFacts(mayHaveJob, nowMs);
  }

  get key(): string {
    return this.plan.promptKey;
  }

  get caller(): Caller {
    return (this.prompt ?? this.#source).caller;
  }

  get user(): string {
    return this.caller.user;
  }

  get number(): number {
    return this.plan.number;
  }

  get createdAtMs(): number {
    return this.#source.createdAtMs;
  }

  get isCancelRequested(): boolean {
    return this.prompt?.cancelRequested === true;
  }
}
