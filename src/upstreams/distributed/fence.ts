import type { HandleWorkerRequest } from '../jobs/worker-requests.ts';
import type { Assets } from '../assets/assets.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { JobRuns } from './job-runs.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';

export type FenceOptions = {
  readonly ledger: Ledger;
  readonly runState: Pick<RunStateStore, 'isCurrent'>;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly fencedJob: JobRuns['fencedJob'];
};

/** Files are made under the fence of their job: a late file is refused, or removed. */
export function withFence(
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
      const row = await ledger.assets.get((saved as StoredOutput).id);
      if (row) await assets.removeAsset(row);
      throw error;
    }
    return saved;
  };
  return (job, question) => (question.kind === 'save' ? save : answer)(job, question);
}

export const TAKEN_OVER = 'this job was taken over by another worker';
