import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Logger } from '../../observability/log.ts';
import { type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import type { JobThreads } from '../jobs/job-threads.ts';
import type { StopRequest } from '../jobs/stop-request.ts';
import type { QueueStop, RunOutcome } from '../jobs/job-queue.ts';
import { type LiveJob, jobFromRow, toEndPatch } from '../jobs/live-job.ts';
import type { JobEnd } from '../jobs/run-on-worker.ts';
import { JobRun } from './job-run.ts';
import type {
  Claim,
  FencedJob,
  RunStateStore,
  WriteResult,
} from '../distributed-state/run-state.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Assets } from '../assets/assets.ts';
import type { OutputRetention } from '../assets/retention.ts';
import { crashedTooOften, internalError } from '../jobs/job-error.ts';
import { type FinalEnd, toEndedJob } from '../jobs/job-lifecycle.ts';
import type { EndPatch } from '../distributed-state/run-fields.ts';

export type JobRunsOptions = JobEndsOptions & {
  readonly threads: Pick<JobThreads, 'run'>;
  readonly log: Logger;
};

/** Runs the jobs that a worker took from the queue, each under its fencing token. */
export class JobRuns {
  readonly #options: JobRunsOptions;
  readonly #runs = new Map<string, JobRun>();
  readonly #ends: JobEnds;

  constructor(options: JobRunsOptions) {
    this.#options = options;
    this.#ends = new JobEnds(options);
  }

  /** Runs a job that this process has taken from the queue. */
  async run(id: string, stop: StopRequest<QueueStop>): Promise<RunOutcome> {
    const { runState, ledger, clock } = this.#options;
    const row = await ledger.jobs.get(id);
    if (!row || IS_TERMINAL[row.status as JobStatus]) return 'over';
    const claim = await runState.claim(id, clock.now());
    reached('after-claim');
    if (claim.kind === 'run') return await this.#runClaimed(row, claim, stop);
    await this.#endClaimed(row, claim);
    return 'over';
  }

  /** Ends a job that the queue runs no more. */
  async giveUp(id: string, end: FinalEnd): Promise<void> {
    const { runState, ledger, clock } = this.#options;
    const row = await ledger.jobs.get(id);
    if (!row || IS_TERMINAL[row.status as JobStatus]) return;
    const claim = await runState.seize(id);
    if (claim.kind === 'ended') return await this.#ends.record(id, claim.patch);
    await this.#ends.removeAssets(id, new Set());
    const job = { ...jobFromRow(row), startedAtMs: clock.now() };
    await this.#ends.finish({ id, fence: claim.fence }, job, end);
  }

  /** The fence of this run of a job; `undefined` when the lease is known to be lost. */
  fencedJob(job: LiveJob): FencedJob | undefined {
    const jobRun = this.#runs.get(job.id);
    return jobRun?.job === job && !jobRun.isLost ? jobRun.fencedJob : undefined;
  }

  async #runClaimed(
    row: JobRow,
    claim: Extract<Claim, { kind: 'run' }>,
    stop: StopRequest<QueueStop>,
  ): Promise<RunOutcome> {
    const { id } = row;
    const jobRun = new JobRun({ ...this.#options, row, claim, stop });
    // A job can return to a worker that has not yet noticed that it lost it.
    this.#runs.get(id)?.onLeaseLost();
    this.#runs.set(id, jobRun);
    try {
      const end = await this.#runNodes(jobRun.job);
      await jobRun.drain();
      return await this.#finish(jobRun, end);
    } finally {
      if (this.#runs.get(id) === jobRun) this.#runs.delete(id);
    }
  }

  /** Stores the end of a job that must not run again. */
  async #endClaimed(row: JobRow, claim: Exclude<Claim, { kind: 'run' }>): Promise<void> {
    const { id } = row;
    if (claim.kind === 'ended') return await this.#ends.record(id, claim.patch);
    await this.#ends.removeAssets(id, new Set());
    const end: FinalEnd =
      claim.kind === 'cancel' ? { status: 'canceled' } : workerLost(claim.attempts);
    // The job did begin; the time of its last run is unknown.
    const startedAtMs = claim.kind === 'cancel' ? null : this.#options.clock.now();
    await this.#ends.finish({ id, fence: claim.fence }, { ...jobFromRow(row), startedAtMs }, end);
  }

  async #runNodes(job: LiveJob): Promise<JobEnd> {
    const { threads, log } = this.#options;
    await this.#ends.removeAssets(job.id, new Set());
    try {
      const end = await threads.run(job);
      // Redis does not wait for this disk.
      await job.filesOnDisk?.();
      return end;
    } catch (error) {
      const facts = { event: 'job.run_failed', err: error, job: job.id };
      log.error(facts, 'a job could not be run');
      return { status: 'failed', error: internalError() };
    }
  }

  async #finish(jobRun: JobRun, end: JobEnd): Promise<RunOutcome> {
    const { fencedJob, job, isUnpublished } = jobRun;
    if (!jobRun.isLost) {
      if (end.status === 'interrupted' || (isUnpublished && end.status !== 'canceled')) {
        await this.#ends.requeue(jobRun);
        return 'interrupted';
      }
      if ((await this.#ends.finish(fencedJob, job, end)) !== 'stale') return 'over';
    }
    await this.#ends.discardResults(jobRun);
    return 'over';
  }
}

type JobEndsOptions = {
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

  constructor(options: JobEndsOptions) {
    this.#options = options;
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
   * the run does not count. The next worker removes the results made so far. A process that closes
   * leaves a job that Redis does not take back to others.
   */
  async requeue(jobRun: JobRun): Promise<void> {
    const { fencedJob, isUnpublished } = jobRun;
    while (!jobRun.isLost) {
      try {
        // A `stale` reply to a repeated command does not mean that another process has the job.
        return void (await this.#options.runState.requeue(fencedJob, isUnpublished ? 0 : 1));
      } catch (error) {
        if (jobRun.isClosing) throw error;
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

/** The end of a job whose workers have crashed too often. */
export function workerLost(attempts: number): FinalEnd {
  return { status: 'failed', error: crashedTooOften(attempts) };
}
