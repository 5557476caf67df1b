import type { Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import { type JobApi, type V2Error, isAboutContent } from '../../protocol/job-api.ts';
import type { Job } from '../../protocol/v2.ts';
import type { LivePrompt } from '../live-prompts.ts';
import { KEY_LABEL, type SubmissionPlan, workflowOf } from './plan.ts';
import type { SubmissionSender, SendResult } from './send.ts';
import type { JobNotFound } from './recovery-rules.ts';

/**
 * The job, or why there is none.
 * @internal
 */
export type JobSearchResult = Job | JobNotFound;

/** `later`: the answer says nothing of what was sent before. */
export type RetryResult = SendResult | { readonly kind: 'later'; readonly error: V2Error };

/** What to do with a submission that may have made a job before. */
export type SubmissionRetry = {
  /** Looks once for its job. */
  findJob(prompt: LivePrompt, plan: SubmissionPlan): Promise<JobSearchResult>;
  /** Sends it once more, under the key it had and no other, after a look that found no job. */
  send(prompt: LivePrompt, plan: SubmissionPlan, searchResult: JobNotFound): Promise<RetryResult>;
};

type SubmissionRetryOptions = {
  readonly jobs: Pick<JobApi, 'recover'>;
  readonly ledger: Ledger;
  readonly sender: SubmissionSender;
  readonly log: Logger;
  readonly now: () => number;
};

/** Keys live for a day upstream; sent again later, one could make a second job. */
const KEY_LIFETIME_MS = 20 * 60 * 60_000;
/** Of services without a job list. */
const NO_JOB_LIST_STATUSES = new Set([404, 405, 501]);

export function createSubmissionRetry({
  jobs,
  ledger,
  sender,
  log,
  now,
}: SubmissionRetryOptions): SubmissionRetry {
  return {
    async findJob(prompt, plan) {
      const found = await jobs.recover(prompt.caller, {
        workflow: workflowOf(plan),
        metadata: { [KEY_LABEL]: plan.label },
        extraData: plan.secrets,
        sentAtMs: prompt.createdAtMs,
        isClaimed: (jobId) => ledger.prompts.hasJob(jobId),
      });
      if (!found.ok && found.error.engineDown) return 'engine down';
      if (!found.ok) return NO_JOB_LIST_STATUSES.has(found.error.status) ? 'not seen' : 'blind';
      if (found.value.job) return found.value.job;
      log.debug({ promptId: prompt.promptId }, 'no job of this prompt is to be seen');
      if (found.value.isCertain) return 'none';
      return found.value.isListed ? 'not listed' : 'not seen';
    },
    async send(prompt, plan, searchResult) {
      // Whoever asked for its end does not want it sent once more.
      if (prompt.cancelRequested || now() - prompt.createdAtMs > KEY_LIFETIME_MS) {
        return { kind: 'unknown', plan, error: NOT_SENT, isKeyUsed: true };
      }
      if (searchResult === 'none') return sender.send(prompt.caller, plan);
      const sent = await sender.resend(prompt.caller, plan);
      if (sent.kind !== 'refused') return sent;
      // Keys are looked at last: a job may be there all the same.
      const wasSearched = searchResult === 'not seen' || searchResult === 'not listed';
      const isFinal = isAboutContent(sent.error) && wasSearched;
      return isFinal ? sent : { kind: 'later', error: sent.error };
    },
  };
}

const NOT_SENT: V2Error = {
  status: 500,
  code: 'submit_outcome_unknown',
  message: 'Whether the job service took it is being found out.',
  details: null,
};
