import { BackgroundTasks } from '../../lib/concurrency.ts';
import { isGone } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import type { SubmissionRetry } from './retry.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { withJitter } from './retry-policy.ts';
import { KEY_LABEL, type SubmissionPlan } from './plan.ts';
import { retry } from '../../lib/retry.ts';

export type LateJobs = ReturnType<typeof createLateJobs>;

type LateJobsOptions = Pick<PromptContext, 'jobs' | 'retryPolicy' | 'log' | 'deadlineClock'> & {
  readonly submissionRetry: SubmissionRetry;
};

/** Cancels jobs that are found after their prompts were ended. */
export function createLateJobs(options: LateJobsOptions) {
  const { jobs, submissionRetry, retryPolicy, log, deadlineClock } = options;
  const tasks = new BackgroundTasks();

  /** Repeats the call with growing waits until it returns true or the search window ends. */
  async function repeat(attempt: () => Promise<boolean>): Promise<void> {
    const deadlineMs = deadlineClock.now() + retryPolicy.searchWindowMs;
    await retry(async () => deadlineClock.now() > deadlineMs || attempt(), {
      clock: { sleep: (ms, signal) => deadlineClock.sleep(withJitter(ms), signal) },
      waitMs: retryPolicy.searchMs,
      signal: tasks.signal,
      onError(error) {
        const facts = { event: 'submission.late_job_retry', err: error };
        log.debug(facts, 'handling a late job failed; retrying');
      },
    });
  }

  async function cancelJob({ caller, promptId }: LivePrompt, { id }: Job): Promise<void> {
    await repeat(async () => {
      const cancelled = await jobs.cancel(caller, id);
      if (!cancelled.ok && !isGone(cancelled.error)) return false;
      const facts = {
        event: 'submission.late_job_cancelled',
        user: caller.user,
        promptId,
        jobId: id,
      };
      log.info(facts, 'cancelled a job that was found after its prompt had ended');
      return true;
    });
  }

  async function findAndCancel(prompt: LivePrompt, plan: SubmissionPlan): Promise<void> {
    let lateJob: Job | undefined;
    await repeat(async () => {
      const searchResult = await submissionRetry.findJob(prompt, plan);
      // A job without the label may belong to another client with the same workflow.
      if (typeof searchResult === 'object' && searchResult.metadata?.[KEY_LABEL] === plan.promptKey)
        lateJob = searchResult;
      return searchResult === 'none' || lateJob !== undefined;
    });
    if (lateJob) await cancelJob(prompt, lateJob);
  }

  return {
    /**
     * Searches for the job of an ended prompt for a limited time, then cancels it. `found`: the
     * job, if it is known already.
     */
    cancelWhenFound(prompt: LivePrompt, plan: SubmissionPlan, found?: Job): void {
      void tasks.run(
        () => (found ? cancelJob(prompt, found) : findAndCancel(prompt, plan)),
        (error) => {
          log.error({ event: 'submission.late_job_failed', err: error }, 'gave up a late job');
        },
      );
    },
    close: () => tasks.close(),
  };
}
