import type { Clock } from '../lib/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { NodeDef } from '../nodes/node.ts';
import type { Logger } from '../observability/log.ts';
import type { JobApi } from '../protocol/job-api.ts';
import type { EngineLimits } from './engine-limits.ts';
import type { OutputOptions } from './assets/outputs.ts';

export type EngineOptions = {
  readonly ledger: Ledger;
  readonly dataDir: string;
  /** An empty folder of this process; by default a folder of the data directory is emptied. */
  readonly spoolDir?: string;
  /** Submissions are validated against these; the workers run the classes of `nodesModule`. */
  readonly nodes: ReadonlyMap<string, NodeDef>;
  /** URL of a compiled module that exports the same classes as `ALL_NODES`; this server's library by default. */
  readonly nodesModule?: string;
  readonly log: Logger;
  readonly clock?: Clock;
  readonly limits: EngineLimits;
  readonly highestUsedElsewhere?: OutputOptions['highestUsedElsewhere'];
};

/** The embedded v2 service. */
export interface Engine extends JobApi {
  /** Starts to run queued jobs, including those of an earlier process. */
  start(): void;
  /** Stops in order: running jobs are recorded as queued, and the next start runs them again. */
  close(): Promise<void>;
}
