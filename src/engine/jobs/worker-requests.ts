import { setImmediate as nextTurn } from 'node:timers/promises';
import { reached } from '../../lib/crash-point.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Clock } from '../../lib/clock.ts';
import type { JobFiles } from '../assets/job-files.ts';
import { retainOutputs } from '../assets/retention.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { LiveJob } from './live-job.ts';
import type { JobRuns } from './run-store.ts';
import type { WorkerRequest, WorkerRequests } from './worker-protocol.ts';

/** Answers a request that a worker makes for a job. */
export type HandleWorkerRequest = (job: LiveJob, request: WorkerRequest) => Promise<unknown>;

type Handlers = {
  readonly [K in keyof WorkerRequests]: (
    job: LiveJob,
    ...args: Parameters<WorkerRequests[K]>
  ) => Promise<ReturnType<WorkerRequests[K]>>;
};

/** Answers in the main thread, since only this thread knows all jobs of a user. */
export function createWorkerRequestHandler({
  ledger,
  runs,
  jobFiles: { assets, blobs, saveOutput, withLock },
  limits,
  clock,
}: {
  readonly ledger: Ledger;
  readonly runs: JobRuns;
  readonly jobFiles: JobFiles;
  readonly limits: EngineLimits;
  readonly clock: Clock;
}): HandleWorkerRequest {
  const handlers: Handlers = {
    begin: async (job) => {
      await runs.begin(job);
      reached('after-run-begin');
      return null;
    },
    async save(job, nodeId, file) {
      const saved = await saveOutput({ user: job.user, jobId: job.id, nodeId, file });
      if (await runs.isCurrent(job)) return saved;
      const row = await ledger.assets.get(saved.id);
      if (row) await assets.removeAsset(row);
      throw new Error('another worker took this job over');
    },
    read: async (_job, hash) => (await blobs.read(hash)) ?? null,
    alive(job, wanted) {
      const untilMs = clock.now() + limits.retentionMs;
      return retainOutputs(wanted, job.user, { ledger, withLock, untilMs });
    },
    handled: () => nextTurn(null),
  };
  return (job, { kind, args }) => handlers[kind](job, ...(args as [never, never]));
}
