import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../../ledger/ledger.ts';
import { jobErrorOf } from '../../translate/late-rejection.ts';
import type { Logger } from '../../observability/log.ts';
import type { LinkJob } from './link-job.ts';
import type { LivePrompts, LivePrompt } from '../live-prompts.ts';
import type { Follower } from '../follow/follower.ts';
import { type RetryPolicy, withJitter, retryAfterMs } from './retry-policy.ts';
import { type SubmissionPlan, toStoredPlan } from './plan.ts';
import { LeadershipLost, type PromptEventLog } from '../prompt-event-log.ts';
import type { SubmissionRecovery, SubmissionRecoveryOptions } from './recover.ts';
import type { SubmissionRetry, RetryResult } from './retry.ts';
import type { SubmissionSender, SendResult } from './send.ts';
import { byQueueOrder } from '../queue-order.ts';

/** A prompt that waits until the upstream has capacity; its plan is in the ledger. */
type QueuedSubmission = {
  readonly prompt: LivePrompt;
  readonly plan: SubmissionPlan;
  /** `unheard`: the process died before it answered the client. */
  readonly clientKnows: 'accepted' | 'unheard';
  /** An earlier process may have sent it, with an unknown outcome. */
  readonly mayHaveBeenSent: boolean;
};

/** A slot in the outbox, held until the submission is added or given up. */
export type Reservation = { release(): void };

/**
 * Accepted prompts without a job. They are submitted one after the other, as the upstream admits
 * them.
 */
export type Outbox = {
  /** True when prompts of this user wait: later ones have to wait, too. */
  hasWaiting(user: string): boolean;
  /** Reserves a slot for a submission of this user; `undefined`: the outbox is full. */
  reserve(user: string): Reservation | undefined;
  /** Number of waiting submissions of all users. */
  depth(): number;
  /** Resolves when all processes know that the prompt waits. */
  add(submission: QueuedSubmission, waitMs?: number): Promise<void>;
  /** Removes a waiting prompt. False: it is not there, or may be on its way upstream. */
  withdraw(prompt: LivePrompt): boolean;
  close(): Promise<void>;
};

type OutboxOptions = Pick<SubmissionRecoveryOptions, 'removePrompt'> & {
  readonly ledger: Pick<Ledger, 'prompts'>;
  readonly submissionRetry: SubmissionRetry;
  readonly livePrompts: LivePrompts;
  readonly promptEventLog: Pick<PromptEventLog, 'isLeader'>;
  readonly follower: Follower;
  readonly sender: SubmissionSender;
  readonly linkJob: LinkJob;
  readonly submissionRecovery: SubmissionRecovery;
  readonly retryPolicy: RetryPolicy;
  readonly log: Logger;
  /** Maximum number of waiting submissions of one user. */
  readonly limit: number;
};

type Queue = { submissions: QueuedSubmission[]; sending: QueuedSubmission | undefined };

/** Wait before checking again whether submissions of other processes come first. */
const RECHECK_MS = 100;

export function createOutbox(deps: OutboxOptions): Outbox {
  const {
    ledger,
    livePrompts,
    promptEventLog,
    follower,
    sender,
    submissionRetry,
    linkJob,
    submissionRecovery,
    retryPolicy,
    log,
  } = deps;
  const stop = new AbortController();
  const queues = new Map<string, Queue>();
  const tasks = new Set<Promise<void>>();
  const reservations = new Map<string, Set<Reservation>>();

  async function sendAll(user: string, queue: Queue, firstWaitMs: number): Promise<void> {
    let failures = 0;
    for (let waitMs = firstWaitMs; ;) {
      if (waitMs > 0)
        await delay(withJitter(waitMs), undefined, { signal: stop.signal, ref: false });
      const submission = queue.submissions[0];
      if (submission === undefined) break;
      if (!isNext(submission, queue)) {
        if (!promptEventLog.isLeader(submission.prompt.key)) remove(queue, submission);
        waitMs = RECHECK_MS;
        continue;
      }
      queue.sending = submission;
      const sent = await sendOnce(submission);
      queue.sending = undefined;
      failures = sent?.kind === 'unsent' ? failures + 1 : 0;
      waitMs = await applySendResult(submission, sent, failures).catch((cause) =>
        recoverAfterFailure(submission, cause),
      );
      if (waitMs === 0) remove(queue, submission);
      else if (sent?.kind === 'unsent') replacePlan(queue, submission, sent.plan);
    }
    queues.delete(user);
  }

  /** Submissions of the same user in other processes have their turn, too. */
  function isNext({ prompt }: QueuedSubmission, { submissions }: Queue): boolean {
    if (!promptEventLog.isLeader(prompt.key)) return false;
    const ours = new Set(submissions.map((submission) => submission.prompt));
    const others = [...livePrompts.waiting(prompt.caller.user)].filter((other) => !ours.has(other));
    return others.every((other) => byQueueOrder(prompt, other) < 0);
  }

  /** `undefined`: Holdover itself failed, or another process owns it now; there may be a job. */
  async function sendOnce(submission: QueuedSubmission): Promise<RetryResult | undefined> {
    const { prompt, plan, mayHaveBeenSent } = submission;
    try {
      if (mayHaveBeenSent) return await retrySend(submission);
      await ledger.prompts.setIntent(plan.label, toStoredPlan(plan, 'away'));
      const sent = await sender.send(prompt.caller, plan);
      const isNotTaken = sent.kind === 'crowded' || sent.kind === 'unsent' || isTemporary(sent);
      const planLeft = sent.kind === 'unsent' ? sent.plan : plan;
      if (isNotTaken) await ledger.prompts.setIntent(plan.label, toStoredPlan(planLeft, 'here'));
      return sent;
    } catch (error) {
      const { promptId, caller } = prompt;
      const facts = { event: 'submission.send_failed', err: error, user: caller.user, promptId };
      if (!(error instanceof LeadershipLost))
        log.error(facts, 'sending a submission failed; its outcome is unknown');
      return undefined;
    }
  }

  async function retrySend({ prompt, plan }: QueuedSubmission): Promise<RetryResult> {
    const searchResult = await submissionRetry.findJob(prompt, plan);
    if (typeof searchResult === 'object')
      return { kind: 'accepted', plan, job: searchResult, nodeErrors: {} };
    return submissionRetry.send(prompt, plan, searchResult);
  }

  /** Returns the wait before the same submission is sent again, in milliseconds; 0: it is done. */
  async function applySendResult(
    submission: QueuedSubmission,
    sent: RetryResult | undefined,
    failures: number,
  ): Promise<number> {
    const { prompt, plan, clientKnows, mayHaveBeenSent } = submission;
    if (sent?.kind === 'accepted') {
      await linkJob(prompt, sent.plan, sent.job);
      return 0;
    }
    const wasNotSent = !mayHaveBeenSent && (sent?.kind === 'crowded' || sent?.kind === 'unsent');
    if (prompt.cancelRequested && wasNotSent) {
      void follower.finishWithoutJob(prompt, { kind: 'canceled' });
      return 0;
    }
    if (sent?.kind === 'crowded') return retryAfterMs(retryPolicy, sent.error);
    if (sent?.kind === 'unsent')
      return Math.min(
        retryPolicy.retryMs.last,
        retryPolicy.retryMs.first * 2 ** Math.min(failures, 10),
      );
    if (sent?.kind === 'later' || isTemporary(sent)) return retryPolicy.retryMs.last;
    if (sent?.kind === 'refused') return finishRefused(submission, sent);
    const isKeyUsed = sent?.isKeyUsed ?? false;
    const isEngineDown = sent?.error.engineDown === true;
    submissionRecovery.recover({
      prompt,
      plan: sent?.plan ?? plan,
      clientKnows,
      isKeyUsed,
      isEngineDown,
    });
    return 0;
  }

  /** The result could not be recorded: recovery searches for the job, and the queue goes on. */
  function recoverAfterFailure(submission: QueuedSubmission, cause: unknown): number {
    if (cause instanceof LeadershipLost) return 0;
    const { prompt, plan, clientKnows } = submission;
    log.error(
      { event: 'submission.record_failed', err: cause, promptId: prompt.promptId },
      'could not record the result of a submission; searching for its job',
    );
    submissionRecovery.recover({ prompt, plan, clientKnows, isKeyUsed: false });
    return 0;
  }

  async function finishRefused(
    { prompt, clientKnows }: QueuedSubmission,
    { error, refusal, plan }: SendResult & { kind: 'refused' },
  ): Promise<number> {
    if (clientKnows === 'unheard') await deps.removePrompt(prompt);
    else {
      const failure = jobErrorOf(error, refusal, plan.graph);
      void follower.finishWithoutJob(prompt, { kind: 'failed', error: failure });
    }
    return 0;
  }

  /** Replaces the plan: its key may be used up. */
  function replacePlan(queue: Queue, submission: QueuedSubmission, plan: SubmissionPlan): void {
    const next = { ...submission, plan };
    queue.submissions = queue.submissions.map((other) => (other === submission ? next : other));
  }

  function remove(queue: Queue, submission: QueuedSubmission): void {
    queue.submissions = queue.submissions.filter((other) => other !== submission);
    // The owner of a submission says whether it waits.
    if (promptEventLog.isLeader(submission.prompt.key)) livePrompts.clearWaiting(submission.prompt);
  }

  /** Counts the submissions here and those known from other processes. */
  function count(user: string): number {
    return Math.max(queues.get(user)?.submissions.length ?? 0, livePrompts.waiting(user).size);
  }

  function start(user: string, waitMs: number): Queue {
    const queue: Queue = { submissions: [], sending: undefined };
    queues.set(user, queue);
    const task = Promise.resolve()
      .then(() => sendAll(user, queue, waitMs))
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        log.error({ event: 'outbox.stopped', err: error, user }, 'the outbox of a user stopped');
      })
      .finally(() => tasks.delete(task));
    tasks.add(task);
    return queue;
  }

  return {
    hasWaiting: (user) => count(user) > 0,
    depth: () => [...queues.values()].reduce((sum, { submissions }) => sum + submissions.length, 0),
    reserve(user) {
      const held = reservations.get(user) ?? new Set();
      if (count(user) + held.size >= deps.limit) return undefined;
      const reserve: Reservation = {
        release() {
          if (held.delete(reserve) && held.size === 0) reservations.delete(user);
        },
      };
      reservations.set(user, held.add(reserve));
      return reserve;
    },
    async add(submission, waitMs = 0) {
      const { user } = submission.prompt.caller;
      const queue = queues.get(user) ?? start(user, waitMs);
      queue.submissions = [...queue.submissions, submission].toSorted((a, b) =>
        byQueueOrder(a.prompt, b.prompt),
      );
      await follower.appendEntry(submission.prompt, 'waits');
    },
    withdraw(prompt) {
      const queue = queues.get(prompt.caller.user);
      const submission = queue?.submissions.find((waiting) => waiting.prompt === prompt);
      if (!queue || !submission || queue.sending === submission) return false;
      remove(queue, submission);
      if (!submission.mayHaveBeenSent) return true;
      submissionRecovery.recover({ ...submission, isKeyUsed: true });
      return false;
    },
    async close() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}

/**
 * True for a refusal that may pass: a refused key may be accepted tomorrow, and a page in place of
 * JSON comes from something in between. Accepted prompts are not dropped for either.
 */
function isTemporary(sent: RetryResult | undefined): boolean {
  if (sent?.kind !== 'refused') return false;
  return sent.error.status === 401 || sent.error.code === 'bad_upstream_response';
}
