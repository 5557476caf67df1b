import type { Keyring } from '../auth/keyring.ts';
import type { createFolderCheck } from '../files/foreign-folders.ts';
import type { ResolvedFile } from '../files/resolve-files.ts';
import type { HistoryLimits, Ledger } from '../ledger/ledger.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/log.ts';
import type { Caller, JobApi } from '../protocol/job-api.ts';
import type { ObjectInfo } from '../protocol/v1.ts';
import type { Hub } from '../sockets/hub.ts';
import type { PromptDurability } from './durability.ts';
import type { LivePrompts } from './live-prompts.ts';
import type { PromptEventLog } from './prompt-event-log.ts';
import type { PromptSpans } from '../tracing/prompt-spans.ts';
import type { SharedCounter } from './submission.ts';
import type { RetryPolicy } from './submit/retry-policy.ts';

/**
 * The services and settings that prompts are built on. A part of `prompts` gets them all, or names the
 * few that it takes.
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
  readonly uploadFolderOf?: Parameters<typeof createFolderCheck>[0]['uploadFolderOf'];
  /** Sends a file again from where the user keeps it: returns the id of its new asset. */
  readonly reupload?:
    | ((caller: Caller, file: ResolvedFile) => Promise<string | undefined>)
    | undefined;
  /** The upstream is a service that may run only the valid outputs of a prompt. */
  readonly mayAcceptPartially: boolean;
  /** True when v2 may know a file of another user by a name its user does not have. */
  readonly mayFindOthersFiles: boolean;
  /** True when the upstream may lose jobs it accepted. The embedded engine keeps them in the same ledger. */
  readonly mayLoseJobs: boolean;
  /** True when another process may run a job again; it removes the files of the run before. */
  readonly mayRerunJobs: boolean;
  readonly durability: PromptDurability;
  /** True when a user's prompts need a call of the user first: the key is never stored. */
  readonly needsCredential: (user: string) => boolean;
  /** Limits of each user's history, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** Maximum number of waiting submissions of one user. */
  readonly outboxLimit: number;
  readonly retryPolicy: RetryPolicy;
  /** Called with v1's status word of each ended prompt. */
  readonly onEnded?: ((statusWord: string) => void) | undefined;
  /** `undefined`: no traces are made. */
  readonly spans?: PromptSpans | undefined;
  readonly log: Logger;
  /** For the line of each ended prompt, which has no field that could hold a secret. */
  readonly endLog: Pick<Logger, 'info'>;
  /** For times that are recorded. */
  readonly clock: Clock;
  /** For waits and deadlines. */
  readonly deadlineClock: Clock;
};
