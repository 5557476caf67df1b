import type { AssetRemoval } from '../assets/assets.ts';
import { extendProducers } from '../assets/retention.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';
import type { Clock } from '../../lib/clock.ts';
import { isRedisAway } from '../../lib/storage-errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import { type FinalEnd, type JobEnd, failedEnd, toEndedJob } from './job-lifecycle.ts';
import type { RunOutcome } from './job-queue.ts';
import type { JobRun, WriteResult } from './job-run.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { LiveJob } from './live-job.ts';
import type { JobRuns } from './run-store.ts';

export type JobRunnerOptions = {
  readonly ledger: Ledger;
  readonly runs: JobRuns;
  readonly threads: { run(job: LiveJob): Promise<JobEnd> };
  readonly assets: AssetRemoval;
  readonly withLock: KeyedMutex;
  readonly limits: Pick<EngineLimits, 'retentionMs'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Runs the jobs that a worker takes from the queue, and ends them. */
export class JobRunner {
  readonly #options: JobRunnerOptions;
  readonly #runs = new Map<string, JobRun>();

  constructor(options: JobRunnerOptions) {
    this.#options = options;
  }

  async run(id: string, stop: AbortSignal): Promise<RunOutcome> {
    const claim = await this.#options.runs.claim(id, stop);
    if (claim.kind === 'run') return await this.#runClaimed(claim.run);
    if (claim.kind === 'end') await this.end(claim.job, claim.end);
    return 'over';
  }

  /** Ends a job that the queue does not run again. */
  async giveUp(id: string, reason: Error | FinalEnd): Promise<void> {
    const { runs, log } = this.#options;
    if (reason instanceof Error)
      log.error({ event: 'job.run_failed', err: reason, job: id }, 'a job could not be run');
    let job: LiveJob | undefined;
    try {
      job = await runs.seize(id);
      if (job) await this.end(job, reason instanceof Error ? failed() : reason);
    } catch (error) {
      const event = 'job.end_not_stored';
      log.error({ event, err: error, job: id }, 'the end of a job could not be stored');
      job?.feed.end();
    }
  }

  /** Cancels a job that was taken from the queue. */
  async cancel(id: string): Promise<void> {
    const job = await this.#options.runs.seize(id);
    if (job) await this.end(job, { status: 'canceled' });
  }

  /** Ends a job that does not run here. */
  async end(job: LiveJob, end: FinalEnd): Promise<void> {
    await this.#removeEarlierFiles(job);
    await this.#finish(job, end);
  }

  async #runClaimed(run: JobRun): Promise<RunOutcome> {
    const { id } = run.job;
    // A job can return to a worker that has not yet noticed that it lost the job.
    this.#runs.get(id)?.onLeaseLost();
    this.#runs.set(id, run);
    try {
      const end = await this.#runNodes(run.job).catch((error: unknown) =>
        this.#repeatLater(run, error),
      );
      await run.drain();
      return await this.#finishRun(run, end);
    } finally {
      if (this.#runs.get(id) === run) this.#runs.delete(id);
    }
  }

  /** Rejects, so that the queue tries the run again. Its worker has not died. */
  async #repeatLater(run: JobRun, error: unknown): Promise<never> {
    await run.drain();
    await this.#options.runs.requeue(run);
    throw error;
  }

  async #runNodes(job: LiveJob): Promise<JobEnd> {
    await this.#removeEarlierFiles(job);
    try {
      return await this.#options.threads.run(job);
    } catch (error) {
      if (this.#options.runs.isShared && isRedisAway(error)) throw error;
      const facts = { event: 'job.run_failed', err: error, job: job.id };
      this.#options.log.error(facts, 'a job could not be run');
      return failed();
    }
  }

  async #finishRun(run: JobRun, end: JobEnd): Promise<RunOutcome> {
    if (!run.isLost) {
      if (end.status === 'interrupted' || (run.isUnpublished && end.status !== 'canceled')) {
        await this.#options.runs.requeue(run);
        return 'interrupted';
      }
      if ((await this.#finish(run.job, end)) !== 'stale') return 'over';
    }
    await this.#discardResults(run);
    return 'over';
  }

  async #finish(job: LiveJob, end: FinalEnd): Promise<WriteResult> {
    const { runs, limits, clock } = this.#options;
    const { retentionMs } = limits;
    const ended = toEndedJob(job, { end, atMs: clock.now(), retentionMs });
    const result = await runs.end(job, ended);
    if (result === 'cancel') return await this.#finish(job, { status: 'canceled' });
    if (result === 'stale') return result;
    await extendProducers(ended, this.#options);
    await this.#removeEarlierFiles(job, new Set(job.outputs.map((output) => output.id)));
    return result;
  }

  /** Removes the results that a worker has made since it lost its job. */
  async #discardResults(run: JobRun): Promise<void> {
    const { ledger, assets, runs } = this.#options;
    const { job } = run;
    run.onLeaseLost();
    for (const { id, job_id: maker } of job.outputs) {
      const row = maker === job.id ? await ledger.assets.get(id) : undefined;
      if (row) await assets.removeAsset(row);
    }
    await runs.discarded(job);
  }

  /** Removes the files that other runs of a job have made. */
  async #removeEarlierFiles({ id }: LiveJob, own: ReadonlySet<string> = NONE): Promise<void> {
    const { ledger, assets, runs } = this.#options;
    if (!runs.isShared) return;
    for (const asset of await ledger.assets.ofJob(id)) {
      if (!own.has(asset.id)) await assets.removeAsset(asset);
    }
  }
}

const NONE: ReadonlySet<string> = new Set();

function failed(): FinalEnd {
  return failedEnd('internal_error', 'the engine failed to run this job');
}
