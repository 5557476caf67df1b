import type { Job } from '../../protocol/v2.ts';
import type { JobsPort, PromptRecords } from '../ports.ts';
import type { PendingSubmission } from './pending-submission.ts';
import { KEY_LABEL, type SubmissionPlan, workflowOf } from './plan.ts';
import type { SearchInput } from './submission-table.ts';

/** The result of one search for the job of a prompt. */
export type Search = {
  readonly result: SearchInput;
  readonly job?: Job | undefined;
  /** True when the service does not know the list of jobs, so it may not remember keys either. */
  readonly mayForgetKeys: boolean;
};

/** Searches once for the job of a prompt. */
export async function searchForJob(
  jobs: JobsPort,
  records: PromptRecords,
  { caller, plan, createdAtMs }: PendingSubmission,
): Promise<Search> {
  const searched = await jobs.api.search(caller, {
    workflow: workflowOf(plan),
    metadata: { [KEY_LABEL]: plan.promptKey },
    extraData: plan.secrets,
    sentAtMs: createdAtMs,
    isClaimed: (jobId) => records.prompts.hasJob(jobId),
  });
  if (searched.ok) {
    const { kind, job, mayForgetKeys = false } = searched.value;
    return { result: kind, job, mayForgetKeys };
  }
  const { engineDown, code } = searched.error;
  if (engineDown) return { result: 'engine down', mayForgetKeys: false };
  const isUnreachable = code === 'upstream_unreachable';
  return { result: isUnreachable ? 'unreachable' : 'no answer', mayForgetKeys: false };
}

/** True when the job has the label of the plan: it belongs to no other client. */
export function hasLabelOf({ promptKey }: SubmissionPlan, job: Job | undefined): boolean {
  return job?.metadata?.[KEY_LABEL] === promptKey;
}
