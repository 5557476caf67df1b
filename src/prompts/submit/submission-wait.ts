import { type SubmissionPace, backoffMs } from '../submission-pace.ts';
import type { PendingSubmission } from './pending-submission.ts';
import type { Input } from './submission-table.ts';

/** Returns the wait after this input, before the submission continues, and before jitter. */
export function waitMsOf(
  pace: SubmissionPace,
  submission: PendingSubmission,
  input: Input,
): number {
  const { facts, failedAttempt, state } = submission;
  if (state === 'submitting') return answeringWaitMs(pace, submission, input);
  if (input === 'not sent') return backoffMs(pace, facts.notSent);
  const error = failedAttempt?.error;
  if (input === 'full' || error?.status === 507) {
    const { least, most, unstated } = pace.retryAfterMs;
    const seconds = error?.retryAfterSeconds;
    return Math.min(most, Math.max(least, seconds === undefined ? unstated : seconds * 1000));
  }
  if (!facts.mayHaveJob) return pace.notSentMs.last;
  const { first, last } = pace.searchMs;
  submission.searchWaitMs = Math.min(last, Math.max(first, submission.searchWaitMs * 1.5));
  return submission.searchWaitMs;
}

/** The wait while the client of the prompt waits for its answer. */
function answeringWaitMs(pace: SubmissionPace, { facts }: PendingSubmission, input: Input): number {
  const { notSentMs, unknownMs, searchMs } = pace.answering;
  if (input === 'not sent') return notSentMs[facts.notSent - 1] ?? searchMs;
  return input === 'unknown' ? (unknownMs[facts.unknown - 1] ?? 0) : searchMs;
}
