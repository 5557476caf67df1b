import type { JobStatus } from '../protocol/v2.ts';

/** One reason to be pending, and where it is shown. */
type PendingRow = {
  /**
   * The text on the page of the job and, for a reason of the prompt itself, in the log line
   * `prompt.pending`.
   */
  readonly text: string;
  /** True when the prompt is in the outbox: later prompts of its user wait behind it. */
  readonly isInOutbox?: true;
  /**
   * The text in `translate/notification-texts.ts` that is sent to clients of the hosted dialect.
   */
  readonly notification?: 'waits' | 'sentAgain' | 'outcomeUnknown' | 'queued';
  /** The part of `/readyz` that reports the reason as well. */
  readonly readyzPart?: 'queue' | 'upstream';
};

/**
 * Every reason why a prompt has not started. A prompt has one reason at a time:
 *
 * 1. Without a job, `LivePrompt.waitReason` holds the reason. Each row names the file that detects
 *    it. That file sets it with `LivePrompts.setWaitReason`, or appends an entry from which
 *    `follow/apply-entry.ts` sets it.
 * 2. With a job (`job_queued`), the queue of the upstream has the reason (`QUEUE_REASONS`).
 *    `app/readiness.ts` asks for it on demand.
 *
 * `pendingReasonOf` chooses between them. These states look like pending, and are not:
 *
 * - A call that waits for memory, or in a brownout, is not answered yet: it has no prompt.
 * - `GET /queue` shows a local client one running prompt, and further ones that run as pending
 *   (`v1/queue.ts`).
 * - The start of a job is shown after the end of the user's earlier prompts, at most a second later
 *   (`follow/job-consumer.ts`).
 * - A prompt whose server died has the reason from before, until another server takes it over
 *   (`take-over.ts`).
 */
const PROMPT_REASONS = {
  /** The first reason of each prompt, in the state `submitting`. */
  submitting: {
    text: 'Its submission is on its way to the upstream, or waits for its turn there.',
  },
  /** Set by `take-over.ts` after a restart. */
  no_key: {
    text: 'The key of its user is not stored. It waits for the next call of the user.',
  },
  /**
   * Set by `follow/apply-entry.ts`. Only the server that sends the prompt knows which of the next
   * four reasons applies.
   */
  in_outbox: {
    text: 'It waits in the outbox.',
    isInOutbox: true,
    notification: 'waits',
  },
  /** Set by `submit/submission-actions.ts`, as are the next three. */
  earlier_prompts: {
    text: 'It waits in the outbox behind earlier prompts of its user.',
    isInOutbox: true,
  },
  no_room: {
    text: 'It waits in the outbox: the upstream has no room for it.',
    isInOutbox: true,
  },
  unreachable: {
    text: 'It waits in the outbox: the upstream cannot be reached.',
    isInOutbox: true,
    readyzPart: 'upstream',
  },
  refused_for_now: {
    text:
      'It waits in the outbox: the upstream does not accept the key now, has no storage left, or a ' +
      'program on the way answers instead of it.',
    isInOutbox: true,
  },
  /** Set by `submit/resend-lost.ts`. */
  job_lost: {
    text: 'It waits in the outbox: the upstream lost its job before the start.',
    isInOutbox: true,
    notification: 'sentAgain',
  },
  /** Set by `submit/submission-actions.ts`, by the table in `submit/submission-table.ts`. */
  searching: {
    text: 'The answer to its submission was lost. Holdover looks for its job.',
    notification: 'outcomeUnknown',
  },

  /** Set by `LivePrompts.setJob`. Stands for `QUEUE_REASONS` where the queue is not asked. */
  job_queued: { text: 'Its job is in the queue of the upstream.', notification: 'queued' },
} as const satisfies { readonly [reason: string]: PendingRow };

/** Why a job waits in the queue of the upstream. */
const QUEUE_REASONS = {
  /**
   * The rest: no other reason applies. Embedded: `engine/memory/memory-job-queue.ts` starts a
   * job when fewer than `--concurrency` run, in the order of `engine/jobs/fair-order.ts`. Over
   * Redis: `engine/bullmq/queue-scripts.ts` does.
   */
  workers_busy: { text: 'The workers run other jobs, or are about to take it. Users take turns.' },
  /** Found by `engine/bullmq/queue-condition.ts`, as are the next two. */
  no_worker: { text: 'No server and no worker takes jobs.', readyzPart: 'queue' },
  paused: { text: 'The queue was paused with a tool for BullMQ.', readyzPart: 'queue' },
  stalled: {
    text: 'No job runs, although there are workers and jobs wait.',
    readyzPart: 'queue',
  },
  /** Found by `engine/bullmq/queue-condition.ts` for this job alone. */
  retry_delayed: {
    text: 'Its last run failed for an internal reason. It runs again in 1 to 30 seconds.',
  },
  /** Found by `app/readiness.ts`. */
  queue_unreachable: { text: 'The queue does not answer.', readyzPart: 'queue' },
  /**
   * The job is at a service: `remote/events/follow-job.ts` sees its start in a stream or
   * by polling.
   */
  not_started: {
    text: 'The service has not started its job, as far as Holdover can see.',
  },
  upstream_unhealthy: {
    text: 'The upstream does not answer as it should.',
    readyzPart: 'upstream',
  },
} as const satisfies { readonly [reason: string]: PendingRow };

/** @internal */
export const PENDING_REASONS = { ...PROMPT_REASONS, ...QUEUE_REASONS };

export type PendingReason = keyof typeof PENDING_REASONS;

/** Why a job waits in the queue of the upstream. */
export type JobQueueReason = keyof typeof QUEUE_REASONS;

/** A reason that is stored in the live prompt. */
export type WaitReason = Exclude<keyof typeof PROMPT_REASONS, 'no_key'>;

/** The members of a live prompt that decide its reason. */
type PendingFacts = {
  readonly status: JobStatus | undefined;
  readonly cancelRequested: boolean;
  readonly waitReason: WaitReason;
  readonly lacksCredential: boolean;
};

/** True when the prompt can be deleted from the queue: as far as known, no part of it runs. */
export function isNotStarted({ status }: Pick<PendingFacts, 'status'>): boolean {
  return status === undefined || status === 'queued';
}

/** True when the prompt is in the outbox of this process or of another one. */
export function isInOutbox({ waitReason }: Pick<PendingFacts, 'waitReason'>): boolean {
  return pendingRow(waitReason).isInOutbox === true;
}

/** The row of a reason. */
export function pendingRow(reason: PendingReason): PendingRow {
  return PENDING_REASONS[reason];
}

/**
 * Returns why the prompt is pending; `null`: it is not. `queueReason` is called only where it
 * decides.
 */
export async function pendingReasonOf(
  prompt: PendingFacts,
  queueReason: () => Promise<JobQueueReason>,
): Promise<PendingReason | null> {
  if (!isNotStarted(prompt) || prompt.cancelRequested) return null;
  if (prompt.lacksCredential) return 'no_key';
  return prompt.waitReason === 'job_queued' ? queueReason() : prompt.waitReason;
}
