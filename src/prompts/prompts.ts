import { createFolderCheck } from '../files/foreign-folders.ts';
import { createFileResolver } from '../files/resolve-files.ts';
import { createAcceptor } from './accept.ts';
import { createCancel } from './cancel.ts';
import type { PromptContext } from './context.ts';
import { createJobCanceller } from './follow/cancel-job.ts';
import { Follower } from './follow/follower.ts';
import type { ReplaceLostJob } from './follow/missing-job.ts';
import { createRemovePrompt } from './follow/remove-prompt.ts';
import { createExternalJobImporter } from './import-external-job.ts';
import { createMarkFetched, createMarkJobFetched } from './mark-fetched.ts';
import { PromptResumption } from './resume.ts';
import { createDuplicateIds } from './submit/duplicate-ids.ts';
import { createFailWithoutJob } from './submit/fail-without-job.ts';
import { createLateJobs } from './submit/late-jobs.ts';
import { createLinkJob } from './submit/link-job.ts';
import { Outbox } from './submit/outbox.ts';
import { SubmissionRecovery } from './submit/recover.ts';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from './submit/retry-policy.ts';
import { createReplaceLostJob } from './submit/replace-lost-job.ts';
import { createSubmissionRetry } from './submit/retry.ts';
import { createSubmissionSender } from './submit/send.ts';
import { DraftSubmitter } from './submit/submit-draft.ts';

export type Prompts = ReturnType<typeof createPrompts>;

type PromptsOptions = Omit<PromptContext, 'retryPolicy'> & {
  readonly retryPolicy: Partial<RetryPolicy>;
};

/**
 * The life of prompts from their `POST` to their history. Each part takes what it needs of the context,
 * and the parts that are named.
 */
export function createPrompts(options: PromptsOptions) {
  const retryPolicy = { ...DEFAULT_RETRY_POLICY, ...options.retryPolicy };
  const context: PromptContext = { ...options, retryPolicy };
  const following = createFollowing(context, (...missing) => submitting.replaceLostJob(...missing));
  const { follower, jobCanceller, removePrompt, failWithoutJob } = following;
  const submitting = createSubmitting(context, following);
  const { outbox, submissionRecovery, lateJobs } = submitting;
  const { cancel, cancelRequested } = createCancel({
    ...context,
    outbox,
    submissionRecovery,
    follower,
    jobCanceller,
  });
  const resumption = new PromptResumption({
    ...context,
    follower,
    outbox,
    submissionRecovery,
    jobCanceller,
    removePrompt,
    failWithoutJob,
    onCancelRequested: cancelRequested,
  });
  const externalJobs = createExternalJobImporter({ ...context, follower, jobCanceller });
  const markFetched = createMarkFetched(context);
  return {
    externalJobs,
    acceptor: createAcceptService(context, following, submitting, resumption),
    cancel,
    markFetched,
    markJobFetched: createMarkJobFetched({ ...context, markFetched }),
    /** The number of accepted prompts that wait until the upstream has capacity. */
    outboxDepth: (): number => outbox.depth(),
    /** Resumes the prompts of an earlier process; once, before the first call. */
    resume: (): Promise<void> => resumption.start(),
    /** Resolves when the live prompts show everything done for this user before, in any process. */
    async whenCurrent(this: void, user: string): Promise<void> {
      await context.promptEventLog.whenCaughtUp(user);
      await resumption.whenResumed(user);
    },
    async close(): Promise<void> {
      await externalJobs.close();
      jobCanceller.close();
      await Promise.all(
        [outbox, submissionRecovery, lateJobs, follower].map((part) => part.close()),
      );
      await context.promptEventLog.close();
    },
  };
}

type Following = ReturnType<typeof createFollowing>;
type Submitting = ReturnType<typeof createSubmitting>;

/** From the job of a prompt to its history. */
function createFollowing(context: PromptContext, replaceLostJob: ReplaceLostJob) {
  const follower = new Follower({ ...context, replaceLostJob });
  const jobCanceller = createJobCanceller(context);
  const removePrompt = createRemovePrompt({ ...context, follower });
  const failWithoutJob = createFailWithoutJob({ follower, removePrompt });
  const linkJob = createLinkJob({ ...context, follower, jobCanceller });
  return { follower, jobCanceller, removePrompt, failWithoutJob, linkJob };
}

/** From the `POST` of a prompt to its job. */
function createSubmitting(context: PromptContext, following: Following) {
  const { follower, linkJob, removePrompt, failWithoutJob } = following;
  const sender = createSubmissionSender(context);
  const submissionRetry = createSubmissionRetry({ ...context, sender });
  const lateJobs = createLateJobs({ ...context, submissionRetry });
  const submissionRecovery = new SubmissionRecovery({
    ...context,
    submissionRetry,
    follower,
    linkJob,
    removePrompt,
    failWithoutJob,
    lateJobs,
  });
  const outbox = new Outbox({
    ...context,
    follower,
    sender,
    submissionRetry,
    submissionRecovery,
    linkJob,
    failWithoutJob,
    lateJobs,
  });
  const replaceLostJob = createReplaceLostJob({ ...context, outbox });
  return { sender, submissionRecovery, outbox, lateJobs, replaceLostJob };
}

function createAcceptService(
  context: PromptContext,
  { follower, linkJob }: Following,
  { sender, outbox, submissionRecovery }: Submitting,
  resumption: PromptResumption,
) {
  const { files } = context.ledger;
  const discover = (key: string) => resumption.discover(key);
  return createAcceptor({
    ...context,
    duplicateIds: createDuplicateIds({ ...context, follower, discover }),
    fileResolver: createFileResolver({ ...context, files }),
    refuseForeignFolders: createFolderCheck({ files, uploadFolderOf: context.uploadFolderOf }),
    draftSubmitter: new DraftSubmitter({
      ...context,
      follower,
      sender,
      linkJob,
      outbox,
      submissionRecovery,
    }),
  });
}
