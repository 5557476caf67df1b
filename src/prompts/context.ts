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

/** The properties of the upstream that decide how prompts are handled. */
type UpstreamTraits = {
  /**
   * True for a service: it may lose accepted jobs, run only the valid outputs of a prompt, and know
   * a file of another user under a name that this user does not have. The engine keeps its jobs in
   * the same ledger.
   */
  readonly isService: boolean;
  /** True when another process may run a job again; it removes the files of the run before. */
  readonly mayRerunJobs: boolean;
};

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
  readonly traits: UpstreamTraits;
  /** True when the outputs that clients see have the ids of the assets API. */
  readonly showsAssetIds: boolean;
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
