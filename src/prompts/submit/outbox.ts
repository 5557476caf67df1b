import { BackgroundTasks } from '../../lib/concurrency.ts';
import { ByUser } from '../../sockets/by-user.ts';
import type { Follower } from '../follow/follower.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { type WaitReason, isInOutbox } from '../pending-reason.ts';
import { LeadershipLost } from '../prompt-event-log.ts';
import { failWithoutJob } from './fail-without-job.ts';
import type { LateJobs } from './late-jobs.ts';
import type { LinkJob } from './link-job.ts';
import { OutboxQueue, type QueuedSubmission, type Reservation } from './outbox-queue.ts';
import { toStoredPlan } from './plan.ts';
import type { SubmissionRecovery } from './recover.ts';
import { backoffMs, retryAfterMs, withJitter } from './retry-policy.ts';
import type { RetryResult, SubmissionRetry } from './retry.ts';
import {
  type SendResult,
  type SendResultOf,
  type SubmissionSender,
  refusalAsJobError,
} from './send.ts';

export type OutboxOptions = PromptContext & {
  readonly follower: Follower;
  readonly sender: SubmissionSender;
  readonly submissionRetry: SubmissionRetry;
  readonly submissionRecovery: SubmissionRecovery;
  readonly linkJob: LinkJob;
  readonly lateJobs: Pick<LateJobs, 'cancelWhenFound'>;
};

/** The result of a turn: the prompt leaves the outbox, or is sent again after this wait. */
type TurnResult = 'done' | { readonly waitMs: number; readonly reason: WaitReason };

/** The wait before checking again for submissions of other processes that come first. */
const RECHECK_MS = 100;

/**
 * Holds accepted prompts without a job. Each user has a queue. The outbox submits its prompts one
 * after the other, as the upstream admits them.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #queues = new Map<string, OutboxQueue>();
  readonly #tasks = new BackgroundTasks();
  /** The slots that are held for submissions which are not in the outbox yet. */
  readonly #reservations = new ByUser<Reservation>();

  constructor(options: OutboxOptions) {
    this.#options = options;
  }

  /** True when prompts of this user wait already: later ones must wait, too. */
  hasWaiting(user: string): boolean {
    return this.#count(user) > 0;
  }

  /** Returns the number of waiting submissions of all users. */
  depth(): number {
    return [...this.#queues.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** Reserves a slot for a submission of this user; `undefined`: the outbox is full. */
  reserve(user: string): Reservation | undefined {
    const taken = this.#count(user) + this.#reservations.of(user).size;
    if (taken >= this.#options.outboxLimit) return undefined;
    const reservation = { release: () => this.#reservations.delete(user, reservation) };
    this.#reservations.add(user, reservation);
    return reservation;
  }

  /** Sends the submission in its turn. Resolves when all processes know that the prompt waits. */
  async add(submission: QueuedSubmission, waitMs = 0): Promise<void> {
    const { prompt } = submission;
    const { user } = prompt.caller;
    const queue = this.#queues.get(user) ?? new OutboxQueue();
    queue.add(submission);
    const appended = this.#options.follower.appendEntry(prompt, 'waits');
    if (!this.#queues.has(user)) this.#start(user, queue, waitMs);
    await appended;
    if (prompt.waitReason !== 'in_outbox') return;
    if (queue.first !== submission) this.#setReason(prompt, 'earlier_prompts');
    // The first prompt of a queue has to wait only after a refusal for lack of capacity.
    else if (waitMs > 0) this.#setReason(prompt, 'no_room');
  }

  /** Ends a prompt that waits here. False: it does not wait here, or may be on its way upstream. */
  async cancel(prompt: LivePrompt): Promise<boolean> {
    const queue = this.#queues.get(prompt.caller.user);
    const submission = queue?.find(prompt);
    if (!queue || !submission || queue.sending === submission) return false;
    await this.#endCancelled(submission, queue);
    return true;
  }

  async close(): Promise<void> {
    await this.#tasks.close();
  }

  #start(user: string, queue: OutboxQueue, waitMs: number): void {
    const { log, retryPolicy } = this.#options;
    this.#queues.set(user, queue);
    const sendAll = () => this.#sendAll(user, queue, waitMs);
    void this.#tasks.run(sendAll, (error) => {
      const facts = { event: 'outbox.stopped', err: error, user };
      log.error(facts, 'the outbox of a user stopped; trying again');
      this.#start(user, queue, retryPolicy.retryMs.last);
    });
  }

  async #sendAll(user: string, queue: OutboxQueue, firstWaitMs: number): Promise<void> {
    for (let waitMs = firstWaitMs; ;) {
      if (waitMs > 0)
        await this.#options.deadlineClock.sleep(withJitter(waitMs), this.#tasks.signal);
      this.#tasks.signal.throwIfAborted();
      if (queue.first === undefined) break;
      waitMs = await this.#takeTurn(queue.first, queue);
    }
    this.#queues.delete(user);
  }

  /** Sends the submission if no other one comes first. Returns the wait until the next turn. */
  async #takeTurn(submission: QueuedSubmission, queue: OutboxQueue): Promise<number> {
    const { promptEventLog, livePrompts } = this.#options;
    const { prompt } = submission;
    if (!promptEventLog.isLeader(prompt.key)) this.#remove(queue, submission);
    else if (prompt.cancelRequested) void this.#endCancelled(submission, queue);
    else if (queue.isAheadOf(livePrompts.inOutbox(prompt.caller.user), prompt)) {
      return this.#sendFirst(submission, queue);
    } else {
      // Submissions of the same user in other processes take their turns, too.
      this.#setReason(prompt, 'earlier_prompts');
      return RECHECK_MS;
    }
    return 0;
  }

  async #sendFirst(submission: QueuedSubmission, queue: OutboxQueue): Promise<number> {
    const { prompt } = submission;
    // Until the result is recorded, the submission cannot be cancelled here.
    queue.sending = submission;
    try {
      const next = await this.#sendAndRecord(submission, queue);
      if (next === 'done') this.#remove(queue, submission);
      else if (prompt.cancelRequested) void this.#endCancelled(submission, queue);
      else {
        this.#setReason(prompt, next.reason);
        return next.waitMs;
      }
      return 0;
    } finally {
      queue.sending = undefined;
    }
  }

  /** Sets the reason why the prompt is still in the outbox. */
  #setReason(prompt: LivePrompt, reason: WaitReason): void {
    if (isInOutbox(prompt)) this.#options.livePrompts.setWaitReason(prompt, reason);
  }

  /**
   * Ends a prompt whose client asked for that. A job of an earlier attempt is cancelled when it is
   * found.
   */
  async #endCancelled(submission: QueuedSubmission, queue: OutboxQueue): Promise<void> {
    const { follower, submissionRecovery } = this.#options;
    const { prompt, mayHaveBeenSent } = submission;
    this.#remove(queue, submission);
    if (!mayHaveBeenSent) return follower.finishWithoutJob(prompt, { kind: 'canceled' });
    submissionRecovery.recover({ ...submission, mayResend: false });
    await submissionRecovery.cancel(prompt);
  }

  /**
   * Sends the submission. `undefined`: Holdover itself failed, or another process now leads the
   * prompt. In both cases there may be a job.
   */
  async #send(submission: QueuedSubmission): Promise<RetryResult | undefined> {
    const { prompt, mayHaveBeenSent } = submission;
    try {
      const result = await (mayHaveBeenSent
        ? this.#findOrSend(submission)
        : this.#sendNew(submission));
      if ('plan' in result) submission.plan = result.plan;
      return result;
    } catch (error) {
      if (error instanceof LeadershipLost) return undefined;
      const { promptId, caller } = prompt;
      const facts = { event: 'submission.send_failed', err: error, user: caller.user, promptId };
      this.#options.log.error(facts, 'sending a submission failed; its outcome is unknown');
      return undefined;
    }
  }

  async #sendNew({ prompt, plan }: QueuedSubmission): Promise<SendResult> {
    const { ledger, sender } = this.#options;
    const result = await sender.send(prompt.caller, plan);
    if (madeNoJob(result))
      await ledger.prompts.setPlan(plan.promptKey, toStoredPlan(result.plan, 'not_sent'));
    return result;
  }

  async #findOrSend({ prompt, plan }: QueuedSubmission): Promise<RetryResult> {
    const { submissionRetry } = this.#options;
    const found = await submissionRetry.findJob(prompt, plan);
    if (typeof found === 'object') return { kind: 'accepted', plan, job: found, nodeErrors: {} };
    return submissionRetry.send(prompt, plan, found);
  }

  async #sendAndRecord(submission: QueuedSubmission, queue: OutboxQueue): Promise<TurnResult> {
    const result = await this.#send(submission);
    queue.failures = result?.kind === 'unsent' ? queue.failures + 1 : 0;
    try {
      return await this.#applySendResult(submission, result, queue.failures);
    } catch (cause) {
      if (!(cause instanceof LeadershipLost)) this.#recoverUnrecorded(submission, cause);
      return 'done';
    }
  }

  async #applySendResult(
    submission: QueuedSubmission,
    result: RetryResult | undefined,
    failures: number,
  ): Promise<TurnResult> {
    const { follower, linkJob, lateJobs, retryPolicy } = this.#options;
    const refusedForNow = { waitMs: retryPolicy.retryMs.last, reason: 'refused_for_now' } as const;
    switch (result?.kind) {
      case 'accepted':
        await linkJob(submission.prompt, result.plan, result.job);
        return 'done';
      case 'no capacity':
        return { waitMs: retryAfterMs(retryPolicy, result.error), reason: 'no_room' };
      case 'unsent':
        return { waitMs: backoffMs(retryPolicy, failures), reason: 'unreachable' };
      case 'later':
        return refusedForNow;
      case 'refused':
        if (isTemporary(result)) return refusedForNow;
        await failWithoutJob(follower, submission, refusalAsJobError(result));
        // The search before the attempt may have seen only a part of the jobs.
        if (submission.mayHaveBeenSent) lateJobs.cancelWhenFound(submission.prompt, result.plan);
        return 'done';
      case 'unknown':
      case undefined:
        this.#recover(submission, result);
        return 'done';
    }
  }

  #recover(
    { prompt, plan, clientKnows }: QueuedSubmission,
    result: SendResultOf<'unknown'> | undefined,
  ): void {
    this.#options.submissionRecovery.recover({
      prompt,
      plan: result?.plan ?? plan,
      clientKnows,
      mayResend: result?.mayResend ?? true,
      isEngineDown: result?.error.engineDown === true,
    });
  }

  /** The result could not be recorded: recovery searches for the job, and the queue goes on. */
  #recoverUnrecorded(submission: QueuedSubmission, cause: unknown): void {
    const { promptId } = submission.prompt;
    const facts = { event: 'submission.record_failed', err: cause, promptId };
    this.#options.log.error(facts, 'could not record the result of a submission');
    this.#recover(submission, undefined);
  }

  #remove(queue: OutboxQueue, submission: QueuedSubmission): void {
    const { promptEventLog, livePrompts } = this.#options;
    queue.remove(submission);
    // Only the leader of a prompt reports that it waits.
    if (promptEventLog.isLeader(submission.prompt.key))
      livePrompts.removeFromOutbox(submission.prompt);
  }

  /** Counts the user's submissions here and those known from other processes. */
  #count(user: string): number {
    const inOtherProcessesToo = this.#options.livePrompts.inOutbox(user).size;
    return Math.max(this.#queues.get(user)?.length ?? 0, inOtherProcessesToo);
  }
}

/** True when this attempt certainly made no job, and a later one may. */
function madeNoJob(result: RetryResult): boolean {
  return result.kind === 'no capacity' || result.kind === 'unsent' || isTemporary(result);
}

/**
 * True for a refusal that may pass: a refused key may be accepted tomorrow, and a page in place of
 * JSON comes from a proxy. An accepted prompt is not dropped for either.
 */
function isTemporary(result: RetryResult | undefined): boolean {
  if (result?.kind !== 'refused') return false;
  return result.error.status === 401 || result.error.code === 'bad_upstream_response';
}
