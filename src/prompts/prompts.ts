import type { Keyring } from '../auth/keyring.ts';
import { createFolderCheck } from '../files/foreign-folders.ts';
import { type ResolvedFile, createFileResolver } from '../files/resolve-files.ts';
import type { HistoryLimits, Ledger } from '../ledger/ledger.ts';
import { type Clock, monotonicClock, systemClock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Hub } from '../sockets/hub.ts';
import { type Acceptor, createAcceptor } from './accept.ts';
import { type Cancel, createCancel } from './cancel.ts';
import { createJobCanceller } from './follow/cancel-job.ts';
import { Follower } from './follow/follower.ts';
import type { Resend } from './follow/missing-job.ts';
import { PromptResumption } from './resume.ts';
import { type ExternalJobImporter, createExternalJobImporter } from './import-external-job.ts';
import type { LivePrompts } from './live-prompts.ts';
import {
  type MarkFetched,
  type MarkJobFetched,
  createMarkFetched,
  createMarkJobFetched,
} from './mark-fetched.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import { createRemovePrompt } from './follow/remove-prompt.ts';
import type { SharedCounter } from './submission.ts';
import { createDuplicateIds } from './submit/duplicate-ids.ts';
import { createLateJobs } from './submit/late-jobs.ts';
import { createLinkJob } from './submit/link-job.ts';
import { Outbox } from './submit/outbox.ts';
import { SubmissionRecovery } from './submit/recover.ts';
import { createResend } from './submit/resend.ts';
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from './submit/retry-policy.ts';
import { createSubmissionRetry } from './submit/retry.ts';
import { createSubmissionSender } from './submit/send.ts';
import { DraftSubmitter } from './submit/submit-draft.ts';

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

export type PromptsOptions = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly promptEventLog: PromptEventLog;
  readonly livePrompts: LivePrompts;
  readonly hub: Hub;
  readonly keyring: Pick<Keyring, 'callerOf' | 'onCaller'>;
  readonly counter: SharedCounter;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  readonly uploadFolderOf?: Parameters<typeof createFolderCheck>[0]['uploadFolderOf'];
  /** Sends a file again from where the user keeps it: returns the id of its new asset. */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
  /** The upstream is a service that may run only the valid outputs of a prompt. */
  readonly mayAcceptPartially: boolean;
  /** True when v2 may know a file of another user by a name its user does not have. */
  readonly mayFindOthersFiles: boolean;
  /** True when the upstream may lose jobs it accepted. */
  readonly mayLoseJobs: boolean;
  /** True when a user's prompts need a call of the user first: the key is never stored. */
  readonly needsOwner: (user: string) => boolean;
  /** Limits of each user's history, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** Maximum number of waiting submissions of one user. */
  readonly outboxLimit: number;
  readonly retryPolicy: Partial<RetryPolicy>;
  /** Called with v1's status word of each ended prompt. */
  readonly onEnded?: (statusWord: string) => void;
  readonly log: Logger;
  /** For times that are recorded. */
  readonly clock?: Clock;
  /** For waits and deadlines. */
  readonly deadlineClock?: Clock;
};

/** The options with their defaults. */
type Wiring = Omit<PromptsOptions, 'clock' | 'deadlineClock' | 'retryPolicy'> & {
  readonly clock: Clock;
  readonly deadlineClock: Clock;
  readonly retryPolicy: RetryPolicy;
};

export function createPrompts(options: PromptsOptions): Prompts {
  const wiring: Wiring = {
    ...options,
    clock: options.clock ?? systemClock,
    deadlineClock: options.deadlineClock ?? monotonicClock,
    retryPolicy: { ...DEFAULT_RETRY_POLICY, ...options.retryPolicy },
  };
  const { hub, promptEventLog, livePrompts, ledger, log } = wiring;
  const following = createFollowing(wiring, (...missing) => submitting.resend(...missing));
  const submitting = createSubmitting(wiring, following);
  const { cancel, cancelRequested } = createCancelService(wiring, following, submitting);
  const resumption = createResumption(wiring, following, submitting, cancelRequested);
  const externalJobs = createImporter(wiring, following);
  const markFetched = createMarkFetched({ hub, promptEventLog });
  const { outbox, submissionRecovery, lateJobs } = submitting;
  return {
    externalJobs,
    acceptor: createAcceptService(wiring, following, submitting, resumption),
    cancel,
    markFetched,
    markJobFetched: createMarkJobFetched({ livePrompts, ledger, markFetched, log }),
    outboxDepth: () => outbox.depth(),
    resume: () => resumption.start(),
    async whenCurrent(user) {
      await promptEventLog.whenCaughtUp(user);
      await resumption.whenResumed(user);
    },
    async close() {
      await externalJobs.close();
      following.jobCanceller.close();
      const parts = [outbox, submissionRecovery, lateJobs, following.follower];
      await Promise.all(parts.map((part) => part.close()));
      await promptEventLog.close();
    },
  };
}

type Following = ReturnType<typeof createFollowing>;
type Submitting = ReturnType<typeof createSubmitting>;

/** From the job of a prompt to its history. */
function createFollowing(wiring: Wiring, resend: Resend) {
  const { jobs, ledger, promptEventLog, livePrompts, hub, history, log, clock } = wiring;
  const { mayLoseJobs, onEnded, deadlineClock } = wiring;
  const follower = new Follower({
    jobs,
    ledger,
    promptEventLog,
    livePrompts,
    hub,
    history,
    mayLoseJobs,
    resend,
    onEnded,
    clock,
    log,
  });
  const jobCanceller = createJobCanceller({ jobs, livePrompts, clock: deadlineClock, log });
  const removePrompt = createRemovePrompt({ ledger, promptEventLog, follower });
  const linkJob = createLinkJob({ ledger, follower, jobCanceller });
  return { follower, jobCanceller, removePrompt, linkJob };
}

/** From the `POST` of a prompt to its job. */
function createSubmitting(wiring: Wiring, { follower, linkJob, removePrompt }: Following) {
  const { jobs, ledger, promptEventLog, livePrompts, log, clock, reupload } = wiring;
  const { retryPolicy, mayLoseJobs, outboxLimit, deadlineClock } = wiring;
  const { files, prompts } = ledger;
  const sender = createSubmissionSender({ jobs, files, prompts, reupload });
  const submissionRetry = createSubmissionRetry({ jobs, ledger, sender, clock, log });
  const search = { submissionRetry, retryPolicy, clock: deadlineClock, log };
  const lateJobs = createLateJobs({ jobs, ...search });
  const outcomes = { ledger, follower, linkJob, promptEventLog, removePrompt, ...search };
  const submissionRecovery = new SubmissionRecovery({ ...outcomes, lateJobs });
  const outbox = new Outbox({
    ...outcomes,
    livePrompts,
    sender,
    submissionRecovery,
    limit: outboxLimit,
  });
  const resend = createResend({
    ledger,
    jobs,
    livePrompts,
    outbox,
    retryPolicy,
    mayLoseJobs,
    clock,
    log,
  });
  return { sender, submissionRecovery, outbox, lateJobs, resend };
}

function createAcceptService(
  wiring: Wiring,
  { follower, linkJob }: Following,
  { sender, outbox, submissionRecovery }: Submitting,
  resumption: PromptResumption,
): Acceptor {
  const { ledger, promptEventLog, livePrompts, objectInfo, retryPolicy, log } = wiring;
  const { clock, deadlineClock, mayAcceptPartially, mayFindOthersFiles } = wiring;
  const { files } = ledger;
  return createAcceptor({
    duplicateIds: createDuplicateIds({
      ledger,
      promptEventLog,
      livePrompts,
      follower,
      discover: (key) => resumption.discover(key),
      clock: deadlineClock,
    }),
    fileResolver: createFileResolver({ files, mayFindOthersFiles, objectInfo }),
    refuseForeignFolders: createFolderCheck({ files, uploadFolderOf: wiring.uploadFolderOf }),
    draftSubmitter: new DraftSubmitter({
      ledger,
      promptEventLog,
      follower,
      sender,
      linkJob,
      outbox,
      submissionRecovery,
      retryPolicy,
      objectInfo,
      mayAcceptPartially,
      log,
    }),
    objectInfo,
    clock,
  });
}

function createCancelService(
  { ledger, promptEventLog, livePrompts, clock, deadlineClock }: Wiring,
  { follower, jobCanceller }: Following,
  { outbox, submissionRecovery }: Submitting,
): Cancel {
  return createCancel({
    ledger,
    promptEventLog,
    livePrompts,
    outbox,
    submissionRecovery,
    follower,
    jobCanceller,
    clock,
    deadlineClock,
  });
}

function createResumption(
  { ledger, promptEventLog, livePrompts, keyring, hub, needsOwner, log }: Wiring,
  { follower, jobCanceller, removePrompt }: Following,
  { outbox, submissionRecovery }: Submitting,
  onCancelRequested: Cancel['cancelRequested'],
): PromptResumption {
  return new PromptResumption({
    ledger,
    promptEventLog,
    livePrompts,
    follower,
    outbox,
    submissionRecovery,
    jobCanceller,
    removePrompt,
    keyring,
    hub,
    onCancelRequested,
    needsOwner,
    log,
  });
}

function createImporter(
  { jobs, ledger, promptEventLog, livePrompts, counter, objectInfo, clock, log }: Wiring,
  { follower, jobCanceller }: Following,
): ExternalJobImporter {
  return createExternalJobImporter({
    jobs,
    ledger,
    promptEventLog,
    livePrompts,
    follower,
    jobCanceller,
    counter,
    objectInfo,
    clock,
    log,
  });
}
