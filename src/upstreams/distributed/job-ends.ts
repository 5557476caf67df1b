import type { Ledger } from '../../ledger/ledger.ts';
import type { Clock } from '../../lib/clock.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Assets } from '../assets/assets.ts';
import type { OutputRetention } from '../assets/output-retention.ts';
import { jobError } from '../jobs/job-error.ts';
import { type FinalEnd, toEndedJob } from '../jobs/job-lifecycle.ts';
import { type LiveJob, toEndPatch } from '../jobs/live-job.ts';
import type { JobRun } from './job-run.ts';
import type { EndPatch } from '../distributed-state/run-fields.ts';
import type { FencedJob, RunStateStore, WriteResult } from '../distributed-state/run-state.ts';

export type JobEndsOptions = {
  readonly ledger: Ledger;
  readonly runState: RunStateStore;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly outputRetention: Pick<OutputRetention, 'extend'>;
  readonly retentionMs: number;
  readonly clock: Clock;
};

/** Delay between attempts to requeue a job while Redis refuses writes. */
const RETRY_MS = 1000;

/** Ends runs of jobs: stores the end, requeues the job, or removes the results of a lost run. */
export class JobEnds {
  readonly #options: JobEndsOptions;
  #isClosing = false;

  constructor(options: JobEndsOptions) {
    this.#options = options;
  }

  /** From now on a job that cannot be requeued is left to other processes. */
  close(): void {
    this.#isClosing = true;
  }

  /** Decides the end in Redis for all processes, then stores it in the ledger. After a crash in between the next claimant stores it. */
  async finish(fencedJob: FencedJob, job: LiveJob, end: FinalEnd): Promise<WriteResult> {
    const { runState, outputRetention, retentionMs, clock } = this.#options;
    const ended = toEndedJob(job, { end, atMs: clock.now(), retentionMs });
    const patch = await toEndPatch(ended);
    const result = await runState.end(fencedJob, patch);
    if (result === 'cancel') return await this.finish(fencedJob, job, { status: 'canceled' });
    if (result === 'stale') return result;
    reached('after-job-end-decided');
    await this.record(job.id, patch);
    reached('after-job-end');
    await outputRetention.extend(ended);
    await this.removeAssets(job.id, new Set(job.outputs.map((output) => output.id)));
    return result;
  }

  /** Stores an end that is decided. */
  async record(id: string, patch: EndPatch): Promise<void> {
    await this.#options.ledger.jobs.update(id, patch);
    await this.#options.runState.expire(id);
  }

  /**
   * Returns the job to the queue. Unpublished events use up an attempt, as a crash does; otherwise
   * the run does not count. The next worker removes the results made so far.
   */
  async requeue(jobRun: JobRun): Promise<void> {
    const { fencedJob, job, isUnpublished } = jobRun;
    const options = { order: job.order, attemptsReturned: isUnpublished ? 0 : 1 } as const;
    while (!jobRun.isLost) {
      try {
        // A `stale` reply to a repeated command does not mean that another process has the job.
        return void (await this.#options.runState.requeue(fencedJob, options));
      } catch (error) {
        if (this.#isClosing) throw error;
        await this.#options.clock.sleep(RETRY_MS);
      }
    }
  }

  /** A worker that has lost its job removes the results it made since. */
  async discardResults(jobRun: JobRun): Promise<void> {
    const { ledger, assets, runState } = this.#options;
    const { job, fencedJob } = jobRun;
    jobRun.onLeaseLost();
    for (const { id, job_id: maker } of job.outputs) {
      const row = maker === job.id ? await ledger.assets.get(id) : undefined;
      if (row) await assets.removeAsset(row);
    }
    await runState.stillAlive(fencedJob);
  }

  /** Removes the files that a job has made, except those to keep. */
  async removeAssets(jobId: string, keep: ReadonlySet<string>): Promise<void> {
    const { ledger, assets } = this.#options;
    for (const asset of await ledger.assets.ofJob(jobId)) {
      if (!keep.has(asset.id)) await assets.removeAsset(asset);
    }
  }
}

export const CANCELED = { status: 'canceled' } as const satisfies FinalEnd;

export const INTERNAL_ERROR: FinalEnd = {
  status: 'failed',
  error: jobError('internal_error', 'the engine failed to run this job', {
    exceptionType: 'RuntimeError',
  }),
};

/** The end of a job whose workers have crashed too often. */
export function workerLost(attempts: number): FinalEnd {
  const message = `the server died ${attempts} times while running this job`;
  const error = jobError('worker_lost', message, { exceptionType: 'RuntimeError' });
  return { status: 'failed', error };
}
