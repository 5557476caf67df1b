import type { StatusWord } from '../protocol/v1.ts';
import type { JobStatus } from '../protocol/v2.ts';
import { isFinal } from './exception-types.ts';

/** How a prompt ended. `lost`: its job is gone, and its end is unknown. */
export type Outcome = 'succeeded' | 'failed' | 'canceled' | 'lost';

/** The status words of `/api/jobs`. */
export const LISTED_STATUSES = [
  'pending',
  'in_progress',
  'completed',
  'failed',
  'cancelled',
] as const;

export type ListedStatus = (typeof LISTED_STATUSES)[number];

/**
 * The word of `/api/job/{id}/status` for each v2 status, in v2's order, and for each outcome, when
 * nothing more is known.
 */
const PLAIN_WORD = {
  queued: 'queued_waiting',
  running: 'preparing',
  succeeded: 'success',
  canceling: 'cancel_requested',
  canceled: 'cancelled',
  failed: 'error',
  expired: 'lost',
  lost: 'lost',
} as const satisfies Record<JobStatus | Outcome, StatusWord>;

/** `status` in `/api/jobs` and `/api/jobs/{id}` for each `StatusWord`, in their order. */
export const LISTED_STATUS: Readonly<Record<StatusWord, ListedStatus>> = {
  success: 'completed',
  error: 'failed',
  non_retryable_error: 'failed',
  lost: 'failed',
  cancelled: 'cancelled',
  submitted: 'pending',
  queued_waiting: 'pending',
  preparing: 'in_progress',
  executing: 'in_progress',
  cancel_requested: 'cancelled',
};

/** The facts about a prompt that has not ended. */
export type LiveFacts = {
  /** Absent while the prompt is being submitted, or while the answer is unknown. */
  readonly status: JobStatus | undefined;
  /** True when a node, step, preview or output was seen. */
  readonly hasEvidence: boolean;
  /** True when the client asked for the end. v2 may not have confirmed it yet. */
  readonly cancelRequested: boolean;
};

/** Returns the status word of a prompt without a history entry. */
export function liveWord({ status, hasEvidence, cancelRequested }: LiveFacts): StatusWord {
  if (status === undefined) return cancelRequested ? 'cancel_requested' : 'submitted';
  const isOpen = status === 'queued' || status === 'running';
  if (isOpen && cancelRequested) return 'cancel_requested';
  return status === 'running' && hasEvidence ? 'executing' : PLAIN_WORD[status];
}

/**
 * Returns the last status word of a prompt. A failure that a repetition would not change has a word
 * of its own.
 */
export function endWord(outcome: Outcome, errorCode?: string): StatusWord {
  if (outcome === 'failed' && errorCode !== undefined && isFinal(errorCode))
    return 'non_retryable_error';
  return PLAIN_WORD[outcome];
}

/** Returns the last status word of an ended prompt. */
export function wordOf({ statusWord }: { readonly statusWord: string | null }): StatusWord {
  return (statusWord ?? 'lost') as StatusWord;
}
