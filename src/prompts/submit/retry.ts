import { type V2Error, isAboutContent, v2Error } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import type { PromptContext } from '../context.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { KEY_LABEL, type SubmissionPlan, workflowOf } from './plan.ts';
import type { SubmissionSender, SendResult } from './send.ts';
import type { JobNotFound } from './recovery-rules.ts';

/** The job, or the reason why none was found. */
export type JobSearchResult = Job | JobNotFound;

/** `later`: the answer says nothing about an earlier request. */
export type RetryResult = SendResult | { readonly kind: 'later'; readonly error: V2Error };

export type SubmissionRetry = ReturnType<typeof createSubmissionRetry>;

type SubmissionRetryOptions = Pick<PromptContext, 'jobs' | 'ledger' | 'log' | 'clock'> & {
  readonly sender: SubmissionSender;
};

/** Services keep an idempotency key for a day. After that, the same key could make a second job. */
const KEY_LIFETIME_MS = 20 * 60 * 60_000;
/** Statuses of services without a job list. */
const NO_JOB_LIST_STATUSES = new Set([404, 405, 501]);

/** Handles submissions that may already have made a job. */
export function createSubmissionRetry(options: SubmissionRetryOptions) {
  const { jobs, ledger, sender, log, clock } = options;
  return {
    /** Searches once for the job of the prompt. */
    async findJob(prompt: LivePrompt, plan: SubmissionPlan): Promise<JobSearchResult> {
      const found = await jobs.recover(prompt.caller, {
        workflow: workflowOf(plan),
        metadata: { [KEY_LABEL]: plan.promptKey },
        extraData: plan.secrets,
        sentAtMs: prompt.createdAtMs,
        isClaimed: (jobId) => ledger.prompts.hasJob(jobId),
      });
      if (!found.ok && found.error.engineDown) return 'engine down';
      if (!found.ok) return NO_JOB_LIST_STATUSES.has(found.error.status) ? 'not seen' : 'no answer';
      if (found.value.job) return found.value.job;
      const facts = { event: 'submission.job_not_found', promptId: prompt.promptId };
      log.debug(facts, 'the search found no job of this prompt');
      if (found.value.isCertain) return 'none';
      return found.value.isListed ? 'not listed' : 'not seen';
    },
    /** Sends the plan again under the same idempotency key, after a search that found no job. */
    async send(
      prompt: LivePrompt,
      plan: SubmissionPlan,
      searchResult: JobNotFound,
    ): Promise<RetryResult> {
      // A prompt whose end was requested is not sent again.
      if (prompt.cancelRequested || clock.now() - prompt.createdAtMs > KEY_LIFETIME_MS) {
        return { kind: 'unknown', plan, error: NOT_SENT, mayResend: false };
      }
      if (searchResult === 'none') return sender.send(prompt.caller, plan);
      const sent = await sender.sendUnchanged(prompt.caller, plan);
      if (sent.kind !== 'refused') return sent;
      // Services check the key last: a job may exist despite the refusal.
      const wasSearched = searchResult === 'not seen' || searchResult === 'not listed';
      const isFinal = isAboutContent(sent.error) && wasSearched;
      return isFinal ? sent : { kind: 'later', error: sent.error };
    },
  };
}

const NOT_SENT = v2Error(
  500,
  'submit_outcome_unknown',
  'It is not known yet whether the job service took it.',
);
