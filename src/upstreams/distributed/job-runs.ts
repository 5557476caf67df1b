import { setTimeout as delay } from 'node:timers/promises';
import type { HandleWorkerRequest } from '../jobs/worker-requests.ts';
import type { Assets } from '../assets/assets.ts';
import { type WorkerAssignment, chooseWorker } from '../jobs/worker-assignment.ts';
import { jobError } from '../jobs/job-error.ts';
import type { OutputRetention } from '../assets/output-retention.ts';
import { type LiveJob, type StopReason, jobFromRow, toEndPatch } from '../jobs/live-job.ts';
import { type FinalEnd, toEndedJob } from '../jobs/job-lifecycle.ts';
import { type JobEnd, type RunnerOptions, runOnWorker } from '../jobs/run-on-worker.ts';
import type { WorkerThread } from '../jobs/worker-thread.ts';
import { reached } from '../../lib/crash-point.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import { type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import { type EventPublisher, createEventPublisher } from './event-publisher.ts';
import type { EndPatch, WriteResult, FencedJob, RunStateStore } from './run-state.ts';

export type JobRunsOptions = {
  readonly ledger: Ledger;
  readonly runState: RunStateStore;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly outputRetention: Pick<OutputRetention, 'extend'>;
  readonly threads: readonly WorkerThread[];
  readonly runner: Omit<RunnerOptions, 'answer'> & { readonly answer: HandleWorkerRequest };
  readonly retentionMs: number;
  readonly clock: () => number;
  readonly log: Logger;
};

/** Runs the jobs that a worker took from the queue, each under its fencing token. */
export type JobRuns = {
  /**
   * Runs the next job. `over`: nothing is left to do; `interrupted`: the job went back to the
   * queue.
   */
  run(ticket: string): Promise<Outcome>;
  /** A job was asked to stop. */
  cancel(id: string): void;
  /** Another process may have this job now. */
  onLeaseLost(id: string): void;
  /** The jobs that run here. */
  ids(): readonly string[];
  /** The fence of this run of a job; `undefined` when the lease is known to be lost. */
  fencedJob(job: LiveJob): FencedJob | undefined;
  interruptAll(): void;
};

type JobRun = {
  readonly fencedJob: FencedJob;
  readonly job: LiveJob;
  readonly publisher: EventPublisher;
  isLost: boolean;
  /** Some events could not be published: subscribers lack events that precede the end. */
  isUnpublished: boolean;
  isEnding: boolean;
};

type Outcome = 'over' | 'interrupted';

/** Delay between attempts to requeue a job while Redis refuses writes. */
const RETRY_MS = 1000;

export function createJobRuns(deps: JobRunsOptions): JobRuns {
  const { ledger, runState, clock } = deps;
  const assignments = deps.threads.map((thread): WorkerAssignment => ({
    thread,
    job: undefined,
    lastUser: undefined,
  }));
  const jobRuns = new Map<string, JobRun>();
  let isClosing = false;

  function stop(jobRun: JobRun, reason: StopReason): void {
    jobRun.job.stop.abort(reason);
  }

  function onLeaseLost(jobRun: JobRun): void {
    if (!jobRun.isLost)
      deps.log.warn(
        { event: 'job.lease_lost', job: jobRun.fencedJob.id },
        'the lease of a job is lost: another process may take the job over',
      );
    jobRun.isLost = true;
    stop(jobRun, 'shutdown');
  }

  function cancel(jobRun: JobRun): void {
    const { job } = jobRun;
    stop(jobRun, 'canceled');
    if (job.status !== 'running' || jobRun.isEnding) return;
    job.status = 'canceling';
    job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
  }

  function applyResult(jobRun: JobRun, result: WriteResult): void {
    if (result === 'stale') onLeaseLost(jobRun);
    if (result === 'cancel') cancel(jobRun);
  }

  function createJobRun(row: JobRow, claim: { fence: number; attempts: number }): JobRun {
    const fencedJob = { id: row.id, fence: claim.fence };
    const publisher = createEventPublisher({
      runState,
      fencedJob,
      clock,
      job: () => jobRun.job,
      onResult: (result) => applyResult(jobRun, result),
      onError(error) {
        deps.log.error(
          { event: 'job.publish_failed', err: error, job: row.id },
          'could not publish events of a job',
        );
        jobRun.isUnpublished = true;
        stop(jobRun, 'shutdown');
      },
    });
    const state = { status: 'running', startedAtMs: clock(), attempts: claim.attempts } as const;
    const job: LiveJob = { ...jobFromRow(row), ...state, feed: publisher.feed };
    const jobRun: JobRun = {
      fencedJob,
      job,
      publisher,
      isLost: false,
      isUnpublished: false,
      isEnding: false,
    };
    return jobRun;
  }

  async function removeAssets(jobId: string, keep: ReadonlySet<string>): Promise<void> {
    for (const asset of await ledger.assets.ofJob(jobId)) {
      if (!keep.has(asset.id)) await deps.assets.removeAsset(asset);
    }
  }

  /** A worker that has lost its job removes the results it made since. */
  async function discardResults(jobRun: JobRun): Promise<void> {
    const { job, fencedJob } = jobRun;
    onLeaseLost(jobRun);
    for (const { id, job_id: maker } of job.outputs) {
      const row = maker === job.id ? await ledger.assets.get(id) : undefined;
      if (row) await deps.assets.removeAsset(row);
    }
    await runState.stillAlive(fencedJob);
  }

  async function recordEnd(id: string, patch: EndPatch): Promise<void> {
    await ledger.jobs.update(id, patch);
    await runState.expire(id);
  }

  /**
   * Decides the end in Redis for all processes, then stores it in the ledger. After a crash in
   * between the next claimant stores it.
   */
  async function finish(fencedJob: FencedJob, job: LiveJob, end: FinalEnd): Promise<WriteResult> {
    const final = toEndedJob(job, { end, atMs: clock(), retentionMs: deps.retentionMs });
    const patch = await toEndPatch(final);
    const result = await runState.end(fencedJob, patch);
    if (result === 'cancel') return await finish(fencedJob, job, { status: 'canceled' });
    if (result === 'stale') return result;
    reached('after-job-end-decided');
    await recordEnd(job.id, patch);
    reached('after-job-end');
    await deps.outputRetention.extend(final);
    await removeAssets(job.id, new Set(job.outputs.map((output) => output.id)));
    return result;
  }

  /** Unpublished events use up an attempt, as a crash does; otherwise the run does not count. */
  async function requeue(jobRun: JobRun): Promise<Outcome> {
    const { fencedJob, job, isUnpublished } = jobRun;
    // The next worker removes the results made so far.
    while (!jobRun.isLost) {
      try {
        await runState.requeue(fencedJob, {
          order: job.order,
          attemptsReturned: isUnpublished ? 0 : 1,
        });
        break;
      } catch (error) {
        if (isClosing) throw error;
        await delay(RETRY_MS);
      }
    }
    // A `stale` reply to a repeated command does not mean that another process has the job.
    return 'interrupted';
  }

  async function finishRun(jobRun: JobRun, end: JobEnd): Promise<Outcome> {
    const { fencedJob, job, isUnpublished } = jobRun;
    if (!jobRun.isLost) {
      if (end.status === 'interrupted') return await requeue(jobRun);
      if (isUnpublished && end.status !== 'canceled') return await requeue(jobRun);
      if ((await finish(fencedJob, job, end)) !== 'stale') return 'over';
    }
    await discardResults(jobRun);
    return 'over';
  }

  async function runOnThread(jobRun: JobRun): Promise<Outcome> {
    const { job, publisher } = jobRun;
    const assignment = chooseWorker(assignments, job.user);
    if (!assignment) throw new Error('a job was taken although all workers are busy');
    assignment.job = job;
    try {
      await removeAssets(job.id, new Set());
      const end = await runOnWorker(job, assignment.thread, deps.runner).catch((cause: unknown) => {
        deps.log.error(
          { event: 'job.run_failed', err: cause, job: job.id },
          'a job could not be run',
        );
        return INTERNAL_ERROR;
      });
      jobRun.isEnding = true;
      await publisher.drain();
      return await finishRun(jobRun, end);
    } finally {
      assignment.job = undefined;
      assignment.lastUser = job.user;
    }
  }

  async function start(row: JobRow): Promise<Outcome> {
    const { id } = row;
    const claim = await runState.claim(id, clock());
    reached('after-claim');
    if (claim.kind === 'ended') {
      await recordEnd(id, claim.patch);
      await runState.drop(id);
      return 'over';
    }
    const fencedJob = { id, fence: claim.fence };
    if (claim.kind !== 'run') {
      await removeAssets(id, new Set());
      const end = claim.kind === 'cancel' ? CANCELED : workerLost(claim.attempts);
      // The job did begin; the time of its last run is unknown.
      const startedAtMs = claim.kind === 'cancel' ? null : clock();
      await finish(fencedJob, { ...jobFromRow(row), startedAtMs }, end);
      return 'over';
    }
    const jobRun = createJobRun(row, claim);
    // A job can return to a worker that has not yet noticed that it lost it.
    withJobRun(id, onLeaseLost);
    jobRuns.set(id, jobRun);
    try {
      return await runOnThread(jobRun);
    } finally {
      if (jobRuns.get(id) === jobRun) jobRuns.delete(id);
    }
  }

  return {
    async run(ticket) {
      const id = await runState.take(ticket);
      if (id === undefined) return 'over';
      const row = await ledger.jobs.get(id);
      if (row && !IS_TERMINAL[row.status as JobStatus]) return await start(row);
      await runState.drop(id, ticket);
      return 'over';
    },
    cancel: (id) => withJobRun(id, cancel),
    onLeaseLost: (id) => withJobRun(id, onLeaseLost),
    ids: () => [...jobRuns.keys()],
    fencedJob(job) {
      const jobRun = jobRuns.get(job.id);
      return jobRun?.job === job && !jobRun.isLost ? jobRun.fencedJob : undefined;
    },
    interruptAll() {
      isClosing = true;
      for (const jobRun of jobRuns.values()) stop(jobRun, 'shutdown');
    },
  };

  function withJobRun(id: string, act: (jobRun: JobRun) => void): void {
    const jobRun = jobRuns.get(id);
    if (jobRun) act(jobRun);
  }
}

const CANCELED = { status: 'canceled' } as const;

const INTERNAL_ERROR: FinalEnd = {
  status: 'failed',
  error: jobError('internal_error', 'the engine failed to run this job', {
    exceptionType: 'RuntimeError',
  }),
};

function workerLost(attempts: number): FinalEnd {
  const message = `the server died ${attempts} times while running this job`;
  const error = jobError('worker_lost', message, { exceptionType: 'RuntimeError' });
  return { status: 'failed', error };
}
