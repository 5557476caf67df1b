import type { Durability } from '../lib/durability.ts';
import type { Keyring } from '../auth/keyring.ts';
import type { ResolvedFile } from '../files/resolve-files.ts';
import type { HistoryLimits, Ledger } from '../ledger/ledger.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Hub } from '../sockets/hub.ts';
import type { LivePrompts } from './live-prompts.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import type { PromptSpans } from '../tracing/prompt-spans.ts';
import type { SharedCounter } from './submission.ts';
import type { SubmissionPace } from './submit/submission-pace.ts';

/**
 * The services and settings that prompts need. Each part of `prompts` gets all of them, or names
 * those that it takes.
 */
export type PromptContext = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly promptEventLog: PromptEventLog;
  readonly livePrompts: LivePrompts;
  readonly hub: Hub;
  readonly keyring: Pick<Keyring, 'callerOf' | 'onCaller'>;
  readonly counter: SharedCounter;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  /**
   * Uploads a file again from the folder where the user keeps it. Returns the id of the new asset.
   */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
  /** True when the upstream is a service that may run only the valid outputs of a prompt. */
  readonly mayAcceptPartially: boolean;
  /** True when v2 may know a file of another user under a name that this user does not have. */
  readonly mayFindOthersFiles: boolean;
  /**
   * True when the upstream may lose accepted jobs. The embedded engine keeps them in the same
   * ledger.
   */
  readonly mayLoseJobs: boolean;
  /** True when another process may run a job again; it removes the files of the run before. */
  readonly mayRerunJobs: boolean;
  /**
   * The durability of a prompt's record, of the link to its job, and of its history entry. `soon` when the jobs are in
   * the same ledger: after a power cut both are as they were at an earlier moment.
   */
  readonly durability: Durability;
  /**
   * True when prompts of this user wait until the user calls, since the user's key is never stored.
   */
  readonly needsCredential: (user: string) => boolean;
  /** Limits of each user's history, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** Maximum number of waiting submissions of one user. */
  readonly outboxLimit: number;
  readonly pace: SubmissionPace;
  /** Called with v1's status word of each ended prompt. */
  readonly onEnded?: ((statusWord: string) => void) | undefined;
  /** `undefined`: no traces are made. */
  readonly spans?: PromptSpans | undefined;
  readonly log: Logger;
  /** Gives the times that are recorded. */
  readonly clock: Clock;
  /** Gives the times of waits and deadlines. */
  readonly deadlineClock: Clock;
};
