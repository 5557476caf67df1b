import type { Clock } from '../../lib/clock.ts';
import { reached } from '../../lib/crash-point.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import { type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import type { EndPatch, RunState } from './run-codec.ts';
import type { Claim, RunStates } from './run-state.ts';
import { workerLost } from '../jobs/job-lifecycle.ts';
import type { JobQueue } from '../jobs/job-queue.ts';
import { JobRun, type WriteResult } from '../jobs/job-run.ts';
import { type LiveJob, jobFromRow, jobStateOf, toPatch } from '../jobs/live-job.ts';
import type { JobRuns, LiveJobs } from '../jobs/run-store.ts';
import type { EventMirrors } from './event-mirrors.ts';
import { EventPublisher } from './event-publisher.ts';
import { retry } from '../../lib/retry.ts';

type RedisRunsOptions = {
  readonly ledger: Ledger;
  readonly runState: RunStates;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The delay between attempts to requeue a job while Redis refuses writes. */
const RETRY_MS = { first: 1000, last: 1000 } as const;

/** The state of unfinished jobs in Redis, for several processes. Each run has a fence of its own. */
export class RedisRuns implements JobRuns {
  readonly isShared = true;
  readonly #options: RedisRunsOptions;

  constructor(options: RedisRunsOptions) {
    this.#options = options;
  }

  async claim(id: string, stop: AbortSignal): ReturnType<JobRuns['claim']> {
    const { runState, clock } = this.#options;
    const claim = await this.#takeOver(id, () => runState.claim(id, clock.now()));
    if (!claim) return { kind: 'over' };
    const { kind, job, attempts } = claim;
    if (kind === 'run') return { kind, run: this.#startRun(job, stop, attempts) };
    if (kind === 'cancel') return { kind: 'end', job, end: { status: 'canceled' } };
    // The job has begun, but the time at which its last run began is not known.
    const end = workerLost(attempts);
    return { kind: 'end', job: { ...job, startedAtMs: clock.now() }, end };
  }

  async seize(id: string): Promise<LiveJob | undefined> {
    return (await this.#takeOver(id, () => this.#options.runState.seize(id)))?.job;
  }

  async begin(job: LiveJob): Promise<void> {
    if ((await this.#options.runState.begin(job)) === 'stale')
      throw new Error('another worker took this job over');
  }

  isCurrent(job: LiveJob): Promise<boolean> {
    return this.#options.runState.isCurrent(job);
  }

  /**
   * The end is decided in Redis, then stored in the ledger. After a crash in between, the next worker that claims the
   * job stores it.
   */
  async end(job: LiveJob, ended: LiveJob): Promise<WriteResult> {
    // Wait for the files first: a write to Redis does not depend on this disk.
    await job.filesOnDisk?.();
    const patch = await toPatch(ended);
    const result = await this.#options.runState.end(job, patch);
    if (result !== 'ok') return result;
    reached('after-job-end-decided');
    await this.#record(job.id, patch);
    reached('after-job-end');
    return result;
  }

  /**
   * A run with unpublished events counts as an attempt, as a crash does. A process that closes does not try again:
   * other processes take the job over.
   */
  async requeue(run: JobRun): Promise<void> {
    const { runState, clock } = this.#options;
    const requeue = async (): Promise<void> => {
      // The result is ignored: a repeated command gets `stale` although no other process has the job.
      if (!run.isLost) await runState.requeue(run.job, run.isUnpublished ? 0 : 1);
    };
    const onError = (error: unknown): void => {
      if (run.isClosing) throw error;
    };
    await retry(requeue, { clock, waitMs: RETRY_MS, onError });
  }

  async discarded(job: LiveJob): Promise<void> {
    await this.#options.runState.stillAlive(job);
  }

  /** Claims a job. `undefined`: the job has ended, and its end is in the ledger. */
  async #takeOver(id: string, claimJob: () => Promise<Claim>) {
    const { ledger, runState } = this.#options;
    const row = await ledger.jobs.get(id);
    if (!row || isOver(row)) {
      // The process that recorded the end may have died before its keys were set to expire.
      await runState.expire(id);
      return undefined;
    }
    const claim = await claimJob();
    reached('after-claim');
    if (claim.kind !== 'ended')
      return { ...claim, job: { ...jobFromRow(row), fence: claim.fence } };
    await this.#record(id, claim.patch);
    return undefined;
  }

  async #record(id: string, patch: EndPatch): Promise<void> {
    await this.#options.ledger.jobs.update(id, patch);
    await this.#options.runState.expire(id);
  }

  #startRun(queued: LiveJob, stop: AbortSignal, attempts: number): JobRun {
    const { runState, clock, log } = this.#options;
    const feed = new EventPublisher(runState, () => run);
    const begun = { status: 'running', startedAtMs: clock.now(), attempts } as const;
    const job: LiveJob = { ...queued, ...begun, feed };
    const run = new JobRun({ job, stop, drain: () => feed.drain(), log });
    return run;
  }
}

type RedisJobsOptions = {
  readonly runState: RunStates;
  readonly queue: JobQueue;
  readonly eventMirrors: EventMirrors;
};

/** The unfinished jobs of several processes, as the clients of this one see them. */
export function createRedisJobs(options: RedisJobsOptions): LiveJobs {
  const { eventMirrors } = options;
  return {
    statesOf: (rows) => statesOf(rows, options),
    ownEvents: (caller, id, signal) => eventMirrors.ofSubmitter(caller, id, signal),
    subscribe: (id, signal) => eventMirrors.subscribe(id, signal),
    add(job) {
      eventMirrors.submitted(job.user, job.id);
      return () => {};
    },
    // The script `cancel` has recorded it.
    recordCancel: async () => {},
  };
}

/** The states of rows of the ledger, with the current state and queue position of unfinished jobs. */
async function statesOf(rows: readonly JobRow[], { runState, queue }: RedisJobsOptions) {
  const live = rows.filter((row) => !isOver(row)).map(({ id }) => id);
  const [runs, positions] = await Promise.all([runState.read(live), queue.positions(live)]);
  const indexes = new Map(live.map((id, i) => [id, i]));
  return rows.map((row) => {
    const i = indexes.get(row.id) ?? -1;
    return currentState(row, runs[i], positions[i] ?? null);
  });
}

/** The state of a job. Until the end is stored in the row, the state of the run is newer than the row. */
function currentState(row: JobRow, run: RunState | undefined, position: number | null) {
  if (run === undefined) return { ...jobStateOf(row), position: null };
  const { end, ...state } = run;
  if (end) return { ...jobStateOf({ ...row, ...end }), position: null };
  return { ...jobStateOf(row), ...state, position };
}

function isOver(row: JobRow): boolean {
  return IS_TERMINAL[row.status as JobStatus];
}
