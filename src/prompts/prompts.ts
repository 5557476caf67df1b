import { monotonicNow } from '../lib/clock.ts';
import { type ExternalJobImporter, createExternalJobImporter } from './import-external-job.ts';
import { type Acceptor, createAcceptor } from './accept.ts';
import { createLinkJob } from './submit/link-job.ts';
import { type Cancel, createCancel } from './cancel.ts';
import {
  type MarkFetched,
  type MarkJobFetched,
  createMarkFetched,
  createMarkJobFetched,
} from './mark-fetched.ts';
import { type FollowerOptions, createFollower } from './follow/follower.ts';
import { createFolderCheck } from '../files/foreign-folders.ts';
import { createRemovePrompt } from './state/remove-prompt.ts';
import type { Keyring } from '../auth/keyring.ts';
import { createLateJobs } from './submit/late-jobs.ts';
import { createOutbox } from './submit/outbox.ts';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from './submit/retry-policy.ts';
import { createJobCanceller } from './follow/cancel-job.ts';
import { createSubmissionRecovery } from './submit/recover.ts';
import { createSubmissionRetry } from './submit/retry.ts';
import { createResend } from './submit/resend.ts';
import { createPromptResumption } from './follow/resume.ts';
import { createFileResolver } from '../files/resolve-files.ts';
import { createSubmissionSender } from './submit/send.ts';
import type { SharedCounter } from './submission.ts';
import { createDuplicateIds } from './submit/duplicate-ids.ts';

/** The life of prompts from their `POST` to their history. */
export type Prompts = {
  readonly acceptor: Acceptor;
  readonly cancel: Cancel['cancel'];
  readonly markFetched: MarkFetched;
  readonly markJobFetched: MarkJobFetched;
  /** The number of accepted prompts that wait until the upstream has capacity. */
  readonly outboxDepth: () => number;
  readonly externalJobs: ExternalJobImporter;
  /** Resumes the prompts of an earlier process; once, before the first call. */
  resume(): Promise<void>;
  /** Resolves when the live prompts show everything done for this user before, in any process. */
  whenCurrent(user: string): Promise<void>;
  close(): Promise<void>;
};

type PromptsOptions = Omit<FollowerOptions, 'resend'> &
  Omit<Parameters<typeof createFileResolver>[0], 'files'> &
  Omit<Parameters<typeof createFolderCheck>[0], 'files'> &
  Pick<Parameters<typeof createSubmissionSender>[0], 'reupload'> & {
    readonly keyring: Keyring;
    readonly needsOwner: (user: string) => boolean;
    readonly mayAcceptPartially: boolean;
    readonly counter: SharedCounter;
    readonly outboxLimit: number;
    readonly retryPolicy: Partial<RetryPolicy>;
  };

export function createPrompts(options: PromptsOptions): Prompts {
  const retryPolicy = { ...DEFAULT_RETRY_POLICY, ...options.retryPolicy };
  const follower = createFollower({ ...options, resend: (...missing) => resend(...missing) });
  const jobCanceller = createJobCanceller({ ...options, now: monotonicNow });
  const { files, prompts } = options.ledger;
  const sender = createSubmissionSender({ ...options, files, prompts });
  const removePrompt = createRemovePrompt({ ...options, follower });
  const submissionRetry = createSubmissionRetry({ ...options, sender });
  const shared = {
    ...options,
    retryPolicy,
    follower,
    jobCanceller,
    sender,
    removePrompt,
    submissionRetry,
  };
  const linkJob = createLinkJob(shared);
  const lateJobs = createLateJobs({ ...shared, now: monotonicNow });
  const submissionRecovery = createSubmissionRecovery({
    ...shared,
    linkJob,
    lateJobs,
    now: monotonicNow,
  });
  const outbox = createOutbox({
    ...shared,
    linkJob,
    submissionRecovery,
    limit: options.outboxLimit,
  });
  const resend = createResend({ ...shared, outbox });
  const services = { ...shared, linkJob, submissionRecovery, outbox };
  const { cancel, cancelRequested: cancelAsked } = createCancel(services);
  const resumption = createPromptResumption({ ...services, cancelRequested: cancelAsked });
  const externalJobs = createExternalJobImporter(services);
  const markFetched = createMarkFetched(options);
  const duplicateIds = createDuplicateIds({ ...services, discover: resumption.discover });
  return {
    externalJobs,
    acceptor: createAcceptor({
      ...services,
      duplicateIds,
      fileResolver: createFileResolver({ ...options, files }),
      refuseForeignFolders: createFolderCheck({ ...options, files }),
    }),
    cancel,
    markFetched,
    markJobFetched: createMarkJobFetched({ ...options, markFetched }),
    outboxDepth: () => outbox.depth(),
    resume: () => resumption.start(),
    async whenCurrent(user) {
      await options.promptEventLog.whenCaughtUp(user);
      await resumption.whenResumed(user);
    },
    async close() {
      await externalJobs.close();
      jobCanceller.close();
      await Promise.all(
        [outbox, submissionRecovery, lateJobs, follower].map((part) => part.close()),
      );
      await options.promptEventLog.close();
    },
  };
}
