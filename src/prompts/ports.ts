import type { Keyring } from '../auth/keyring.ts';
import type { ResolvedFile } from '../files/resolve-files.ts';
import type { FileStore, HistoryLimits, PromptStore } from '../ledger/ledger.ts';
import type { Clock } from '../lib/clock.ts';
import type { Durability } from '../lib/durability.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Hub } from '../sockets/hub.ts';
import type { PromptSpans } from '../tracing/spans.ts';
import type { LivePrompts } from './live-prompts.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import type { SharedCounter } from './submission.ts';
import type { SubmissionPace } from './submission-pace.ts';

/** Everything that prompts need from outside. */
export type PromptPorts = {
  readonly jobs: JobsPort;
  readonly records: PromptRecords;
  readonly frames: Frames;
  readonly policy: SubmissionPolicy;
};

/** The upstream, and the keys with which it is called. */
type JobsPort = {
  readonly api: JobApi;
  readonly objectInfo: (caller: Caller) => Promise<ObjectInfo>;
  /**
   * Uploads a file again from the folder where the user keeps it. Returns the id of the new asset.
   */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
  readonly keyring: Keyring;
  /**
   * True when prompts of this user wait until the user calls, since the user's key is never stored.
   */
  readonly needsCredential: (user: string) => boolean;
};

/** The records that outlive the process that accepted a prompt. */
export type PromptRecords = {
  readonly prompts: PromptStore;
  readonly files: FileStore;
  readonly eventLog: PromptEventLog;
  readonly counter: SharedCounter;
};

/** The part of prompts that clients and operators see. */
type Frames = {
  readonly livePrompts: LivePrompts;
  readonly hub: Hub;
  /** True when the outputs that clients see have the ids of the assets API. */
  readonly showsAssetIds: boolean;
  /** Called with v1's status word of each ended prompt. */
  readonly onEnded?: ((statusWord: string) => void) | undefined;
  /** `undefined`: no traces are made. */
  readonly spans?: PromptSpans | undefined;
  readonly log: Logger;
};

/** The limits and times that decide how prompts are handled. */
export type SubmissionPolicy = {
  readonly traits: UpstreamTraits;
  /**
   * The durability of a prompt's record, of the link to its job, and of its history entry. `soon` when the jobs are in
   * the same ledger: after a power cut both are as they were at an earlier moment.
   */
  readonly durability: Durability;
  /** Limits of each user's history, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** Maximum number of waiting submissions of one user. */
  readonly outboxLimit: number;
  readonly pace: SubmissionPace;
  /** Gives the times that are recorded. */
  readonly clock: Clock;
  /** Gives the times of waits and deadlines. */
  readonly deadlineClock: Clock;
};

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
