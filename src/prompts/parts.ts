import type { JobCanceller } from './follow/cancel-job.ts';
import type { Follower } from './follow/follower.ts';
import type { Submissions } from './submit/submissions.ts';

/** The parts that lead a prompt to its job, and from there to its history. */
export type PromptParts = {
  readonly follower: Follower;
  readonly jobCanceller: JobCanceller;
  readonly submissions: Submissions;
};
