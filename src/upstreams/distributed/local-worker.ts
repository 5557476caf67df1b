import { createWorkerRequestHandler, type HandleWorkerRequest } from '../jobs/worker-requests.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { JobThreads } from '../jobs/job-threads.ts';
import type { DistributedEngineOptions, SharedServices } from './shared-services.ts';
import { JobRuns, workerLost } from './job-runs.ts';
import { MAX_STALLS } from './bull-worker.ts';
import { internalError } from '../jobs/job-error.ts';
import type { FinalEnd } from '../jobs/job-lifecycle.ts';
import { UnrecoverableError } from 'bullmq';
import type { Assets } from '../assets/assets.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';

/** The worker threads of this process, which run jobs of the queue. */
export type LocalWorker = { start(): void; close(): Promise<void> };

/** Runs jobs of the queue in threads of this process, as many as `concurrency` says. */
export function createLocalWorker(
  deps: DistributedEngineOptions,
  shared: SharedServices,
): LocalWorker | undefined {
  const { ledger, limits, log } = deps;
  const { jobFiles, runState, clock } = shared;
  const { concurrency } = limits;
  if (concurrency === 0) return undefined;
  const fenceOptions = {
    ledger,
    runState,
    assets: jobFiles.assets,
    fencedJob: (job: LiveJob) => jobRuns.fencedJob(job),
  };
  const begin = async (job: LiveJob): Promise<void> => {
    const fencedJob = jobRuns.fencedJob(job);
    if (fencedJob === undefined || (await runState.begin(fencedJob)) === 'stale')
      throw new Error(TAKEN_OVER);
  };
  const answer = withFence(createWorkerRequestHandler({ ...jobFiles, begin }), fenceOptions);
  const threads = new JobThreads({ ...deps, clock, jobFiles, answer });
  const { retentionMs } = limits;
  const jobRuns = new JobRuns({ ...jobFiles, ledger, runState, threads, clock, log, retentionMs });
  const worker = shared.queue.worker({
    concurrency,
    run: (id, stop) => jobRuns.run(id, stop),
    giveUp: (id, error) => jobRuns.giveUp(id, endOf(error)),
  });
  return {
    start() {
      threads.start();
      worker.start();
    },
    async close() {
      await worker.close();
      await threads.terminate();
    },
  };
}

/** BullMQ reports a job whose workers died too often with an error of this class. */
function endOf(error: Error): FinalEnd {
  if (error instanceof UnrecoverableError) return workerLost(MAX_STALLS + 1);
  return { status: 'failed', error: internalError() };
}

type FenceOptions = {
  readonly ledger: Ledger;
  readonly runState: Pick<RunStateStore, 'isCurrent'>;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly fencedJob: JobRuns['fencedJob'];
};

/** Files are made under the fence of their job: a late file is refused, or removed. */
function withFence(
  answer: HandleWorkerRequest,
  { ledger, runState, assets, fencedJob }: FenceOptions,
): HandleWorkerRequest {
  async function refuseStale(job: LiveJob): Promise<void> {
    const current = fencedJob(job);
    if (current === undefined || !(await runState.isCurrent(current))) throw new Error(TAKEN_OVER);
  }
  const save: HandleWorkerRequest = async (job, question) => {
    await refuseStale(job);
    const saved = await answer(job, question);
    try {
      await refuseStale(job);
    } catch (error) {
      const output = saved as StoredOutput | null;
      const row = output && (await ledger.assets.get(output.id));
      if (row) await assets.removeAsset(row);
      throw error;
    }
    return saved;
  };
  return (job, question) => (question.kind === 'save' ? save : answer)(job, question);
}

const TAKEN_OVER = 'this job was taken over by another worker';
