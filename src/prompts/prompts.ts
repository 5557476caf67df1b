import { createFileResolver } from '../files/resolve-files.ts';
import { createAcceptor } from './accept.ts';
import { createCancel } from './cancel.ts';
import type { PromptContext } from './context.ts';
import { createJobCanceller } from './follow/cancel-job.ts';
import { Follower } from './follow/follower.ts';
import type { ReplaceLostJob } from './follow/missing-job.ts';
import { createExternalJobImporter } from './import-external-job.ts';
import { createMarkFetched, createMarkJobFetched } from './mark-fetched.ts';
import { PromptTakeover } from './take-over.ts';
import { createDuplicateIds } from './submit/duplicate-ids.ts';
import { createSendPlan } from './submit/attempt.ts';
import { createLinkJob } from './submit/link-job.ts';
import { createReplaceLostJob } from './submit/resend-lost.ts';
import { DEFAULT_PACE, type SubmissionPace } from './submit/submission-pace.ts';
import { Submissions } from './submit/submissions.ts';

export type Prompts = ReturnType<typeof createPrompts>;

type PromptsOptions = Omit<PromptContext, 'pace'> & { readonly pace: Partial<SubmissionPace> };

/**
 * The life of prompts from their `POST` to their history. Each part takes the members that it names
 * from the context and from earlier parts.
 */
export function createPrompts(options: PromptsOptions) {
  const pace = { ...DEFAULT_PACE, ...options.pace };
  const context: PromptContext = { ...options, pace };
  const following = createFollowing(context, (...missing) => submitting.replaceLostJob(...missing));
  const submitting = createSubmitting(following);
  const { follower, jobCanceller, submissions } = submitting;
  const { cancel, cancelRequested } = createCancel(submitting);
  const takeover = new PromptTakeover({ ...submitting, onCancelRequested: cancelRequested });
  const externalJobs = createExternalJobImporter(following);
  const markFetched = createMarkFetched(context);
  return {
    externalJobs,
    acceptor: createAcceptService(submitting, takeover),
    cancel,
    markFetched,
    markJobFetched: createMarkJobFetched({ ...context, markFetched }),
    /** The number of accepted prompts that wait until the upstream has capacity. */
    outboxDepth: (): number => submissions.outboxDepth(),
    /** Takes over the prompts of an earlier process. Call it once, before the first request. */
    takeOver: (): Promise<void> => takeover.start(),
    /** Resolves when the live prompts show everything that any process did before for this user. */
    async whenCurrent(this: void, user: string): Promise<void> {
      await context.promptEventLog.whenCaughtUp(user);
      await takeover.whenTakenOver(user);
    },
    async close(): Promise<void> {
      await externalJobs.close();
      jobCanceller.close();
      await Promise.all([submissions.close(), follower.close()]);
      await context.promptEventLog.close();
    },
  };
}

type Following = ReturnType<typeof createFollowing>;
type Submitting = ReturnType<typeof createSubmitting>;

/** Creates the parts that lead from the job of a prompt to its history. */
function createFollowing(context: PromptContext, replaceLostJob: ReplaceLostJob) {
  const follower = new Follower({ ...context, replaceLostJob });
  const jobCanceller = createJobCanceller(context);
  const linkJob = createLinkJob({ ...context, follower, jobCanceller });
  return { ...context, follower, jobCanceller, linkJob };
}

/** Creates the parts that lead from the `POST` of a prompt to its job. */
function createSubmitting(following: Following) {
  const submissions = new Submissions({ ...following, sendPlan: createSendPlan(following) });
  const replaceLostJob = createReplaceLostJob({ ...following, submissions });
  return { ...following, submissions, replaceLostJob };
}

function createAcceptService(submitting: Submitting, takeover: PromptTakeover) {
  const { files } = submitting.ledger;
  const discover = (key: string) => takeover.discover(key);
  return createAcceptor({
    ...submitting,
    duplicateIds: createDuplicateIds({ ...submitting, discover }),
    fileResolver: createFileResolver({
      ...submitting,
      files,
      mayFindOthersFiles: submitting.traits.isService,
    }),
  });
}
