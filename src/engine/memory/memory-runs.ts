import type { Clock } from '../../lib/clock.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Durability } from '../../lib/durability.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { AssetRemoval } from '../assets/assets.ts';
import { jobLock } from '../assets/retention.ts';
import { MAX_ATTEMPTS, workerLost } from '../jobs/job-lifecycle.ts';
import type { EndJob } from '../jobs/create-engine.ts';
import { JobRun, type WriteResult } from '../jobs/job-run.ts';
import { type LiveJob, jobFromRow, jobStateOf, showJob, toPatch } from '../jobs/live-job.ts';
import type { JobRuns, LiveJobs } from '../jobs/run-store.ts';
import { retry } from '../../lib/retry.ts';

export type MemoryRunsOptions = {
  readonly ledger: Ledger;
  readonly withLock: KeyedMutex;
  /** The unfinished jobs by id. A job is removed when it is over. */
  readonly live: Map<string, LiveJob>;
  /** Aborted when the process ends. */
  readonly closing: AbortSignal;
  readonly clock: Clock;
  readonly log: Logger;
};

type Unfinished = Pick<MemoryRunsOptions, 'ledger' | 'withLock' | 'live'>;

/** Writes the changes of one job one after the other, and none after its end. */
async function save(
  { ledger, withLock, live }: Unfinished,
  id: string,
  change: () => Promise<Partial<JobRow>>,
  durability?: Durability,
): Promise<void> {
  await withLock(jobLock(id), async () => {
    if (live.has(id)) await ledger.jobs.update(id, await change(), durability);
  });
}

/** The unfinished jobs of a single process, as its clients see them. */
export function createLiveJobs(options: Unfinished): LiveJobs {
  const { live } = options;
  return {
    find: (id) => live.get(id),
    statesOf: async (rows) => rows.map((row) => live.get(row.id) ?? jobStateOf(row)),
    ownEvents({ user }, id, signal) {
      const job = live.get(id);
      return job?.user === user ? job.feed.subscribe(signal) : undefined;
    },
    add(job) {
      live.set(job.id, job);
      job.feed.hold();
      // The client that submitted the job subscribes first.
      return () => void setImmediate(() => job.feed.release());
    },
    recordCancel: (id) => save(options, id, async () => ({ status: 'canceling' })),
  };
}

/** The wait before a write is repeated. Until it succeeds the job is not over. */
const RETRY_WRITE_MS = { first: 1000, last: 1000 } as const;

/** The runs of a single process: in its memory, and in the ledger for the next process. */
export class MemoryRuns implements JobRuns {
  readonly isShared = false;
  readonly #options: MemoryRunsOptions;
  /** The jobs that the next process runs again, since their end could not be stored here. */
  readonly #unstored = new Set<string>();

  constructor(options: MemoryRunsOptions) {
    this.#options = options;
  }

  async claim(id: string, stop: AbortSignal): ReturnType<JobRuns['claim']> {
    const { live, clock, log } = this.#options;
    const job = live.get(id);
    if (!job) return { kind: 'over' };
    Object.assign(job, { status: 'running', position: null, startedAtMs: clock.now() });
    const drain = async (): Promise<void> => await job.feed.whenReleased();
    return { kind: 'run', run: new JobRun({ job, stop, drain, log }) };
  }

  async seize(id: string): Promise<LiveJob | undefined> {
    return this.#unstored.has(id) ? undefined : this.#options.live.get(id);
  }

  /** The job may be the cause of a crash from now on, but not of a power cut. */
  async begin(job: LiveJob): Promise<void> {
    job.attempts++;
    job.hasBegun = true;
    await save(this.#options, job.id, () => toPatch(job), 'soon');
  }

  async isCurrent(): Promise<boolean> {
    return true;
  }

  /** A job whose end is lost in a power cut runs again. */
  end(job: LiveJob, ended: LiveJob): Promise<WriteResult> {
    const { ledger, withLock, live, clock } = this.#options;
    return withLock(jobLock(job.id), async () => {
      const patch = await toPatch(ended);
      await this.#writeUntilStored(job.id, () =>
        ledger.jobs.update(job.id, patch, 'soon', job.filesOnDisk),
      );
      reached('after-job-end');
      Object.assign(job, ended, { position: null });
      live.delete(job.id);
      const data = { status: job.status, queue_position: null, job: showJob(job, clock.now()) };
      job.feed.emit({ event: 'status', data });
      job.feed.end();
      return 'ok' as const;
    });
  }

  async requeue({ job }: JobRun): Promise<void> {
    Object.assign(job, {
      status: 'queued',
      startedAtMs: null,
      progress: null,
      cachedNodes: null,
      outputs: [],
      ui: {},
    });
    if (job.hasBegun) job.attempts--;
    job.hasBegun = false;
    await save(this.#options, job.id, () => toPatch(job));
    job.feed.end();
  }

  async discarded(): Promise<void> {}

  async #writeUntilStored(id: string, write: () => Promise<void>): Promise<void> {
    const { closing, clock, log } = this.#options;
    await retry(write, {
      // The end of the process ends the wait, and one more attempt is made.
      clock: { sleep: (ms) => clock.sleep(ms, closing).catch(() => {}) },
      waitMs: RETRY_WRITE_MS,
      onError: (error) => {
        log.error(
          { event: 'job.end_store_failed', err: error },
          'the end of a job could not be stored: trying again',
        );
        if (!closing.aborted) return;
        this.#unstored.add(id);
        throw error;
      },
    });
  }
}

/**
 * Restores the jobs. Queued jobs keep their order. A running job starts again without its earlier
 * outputs. A job with a recorded cancel is cancelled.
 */
export async function recoverJobs(
  { ledger, assets, live }: Unfinished & { readonly assets: AssetRemoval },
  end: EndJob,
): Promise<readonly LiveJob[]> {
  for (const row of await ledger.jobs.unfinished()) {
    const job = jobFromRow(row);
    const wasRunning = row.status === 'running';
    if (row.status === 'canceling') {
      await end({ ...job, ...jobStateOf(row) }, { status: 'canceled' });
    } else if (wasRunning && job.attempts >= MAX_ATTEMPTS) {
      await end({ ...job, ...jobStateOf(row) }, workerLost(job.attempts));
    } else {
      for (const asset of await ledger.assets.ofJob(row.id)) await assets.removeAsset(asset);
      if (wasRunning) await ledger.jobs.update(row.id, await toPatch(job));
      live.set(job.id, job);
    }
  }
  return [...live.values()];
}
