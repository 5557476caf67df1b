import type { Clock } from '../../lib/clock.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Durability } from '../../lib/durability.ts';
import type { Ledger, JobRow } from '../../ledger/ledger.ts';
import { type LiveJob, jobFromRow, showJob, toEndPatch, toPatch } from './live-job.ts';
import type { Logger } from '../../observability/log.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';
import { jobLock } from '../assets/retention.ts';
import type { JobEnd } from './run-on-worker.ts';
import { stringifyJson } from '../../protocol/json.ts';
import type { Assets } from '../assets/assets.ts';
import { crashedTooOften } from './job-error.ts';

/** An end that is final; an interrupted job has none yet. */
export type FinalEnd = Exclude<JobEnd, { status: 'interrupted' }>;

/** Changes unfinished jobs, in memory and in the ledger alike. */
export type JobLifecycle = ReturnType<typeof createJobLifecycle>;

export type JobLifecycleOptions = {
  readonly ledger: Ledger;
  readonly withLock: KeyedMutex;
  /** By id; a job is removed when it is over. */
  readonly live: Map<string, LiveJob>;
  readonly retentionMs: number;
  readonly clock: Clock;
  readonly log: Logger;
};

/** A store that is unavailable now may be back later; until then the job is not over. */
const RETRY_WRITE_MS = 1000;

/** Changes of one job are written one after the other. */
export function createJobLifecycle(deps: JobLifecycleOptions) {
  const { ledger, withLock, live, clock } = deps;
  const endingIds = new Set<string>();
  const save = (job: LiveJob, durability?: Durability): Promise<void> =>
    withLock(jobLock(job.id), async () => {
      if (live.has(job.id)) await ledger.jobs.update(job.id, toPatch(job), durability);
    });
  async function writeUntilStored(write: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        return await write();
      } catch (error) {
        deps.log.error(
          { event: 'job.end_store_failed', err: error },
          'the end of a job could not be stored: trying again',
        );
        await clock.sleep(RETRY_WRITE_MS);
      }
    }
  }
  return {
    /** Stores a job's current state, unless it is over. */
    save: (job: LiveJob): Promise<void> => save(job),
    /**
     * Counts an attempt when the first node begins: a crash from now on may be caused by the job. A
     * power cut is not.
     */
    async countAttempt(job: LiveJob): Promise<void> {
      job.attempts++;
      job.hasBegun = true;
      await save(job, 'soon');
    },
    /** True while a job's end is being stored: nothing about the job changes any more. */
    isEnding: (job: LiveJob): boolean => endingIds.has(job.id),
    /**
     * Ends a job: first in the ledger, then for its subscribers. A job whose end is lost with the
     * power runs again.
     */
    finish: (job: LiveJob, end: FinalEnd): Promise<void> =>
      withLock(jobLock(job.id), async () => {
        endingIds.add(job.id);
        const final = toEndedJob(job, { end, atMs: clock.now(), retentionMs: deps.retentionMs });
        const patch = await toEndPatch(final);
        await writeUntilStored(() => ledger.jobs.update(job.id, patch, 'soon', job.filesOnDisk));
        reached('after-job-end');
        Object.assign(job, final, { position: null });
        live.delete(job.id);
        endingIds.delete(job.id);
        const data = { status: job.status, queue_position: null, job: showJob(job, clock.now()) };
        job.feed.emit({ event: 'status', data });
        job.feed.end();
      }),
    /** Leaves a job to the next process; an orderly stop is not a failed attempt. */
    async suspend(job: LiveJob): Promise<void> {
      Object.assign(job, {
        status: 'queued',
        startedAtMs: null,
        progress: null,
        cachedNodes: null,
      });
      Object.assign(job, { outputs: [], ui: {} });
      if (job.hasBegun) job.attempts--;
      job.hasBegun = false;
      await save(job);
      job.feed.end();
    },
  };
}

/** A job as it is when over. A cancel during the last node still counts. */
export function toEndedJob(
  job: LiveJob,
  at: { end: FinalEnd; atMs: number; retentionMs: number },
): LiveJob {
  const isCanceled = job.stop.reason === 'canceled';
  const end: FinalEnd = isCanceled ? { status: 'canceled' } : at.end;
  return {
    ...job,
    status: end.status,
    error: end.status === 'failed' ? end.error : null,
    completedAtMs: at.atMs,
    expiresAtMs: at.atMs + at.retentionMs,
  };
}

/**
 * A job fails after this many crashes of its process while one of its nodes was running; an orderly
 * stop, or a crash while the job waits, does not count.
 */
export const MAX_ATTEMPTS = 3;

type RecoverOptions = {
  readonly ledger: Ledger;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly retentionMs: number;
  readonly clock: Clock;
};

/**
 * Recovers the jobs that an earlier process left unfinished: queued jobs keep their order, a
 * running one starts again without its earlier outputs, one that was being cancelled is cancelled.
 */
export async function recoverJobs(deps: RecoverOptions): Promise<readonly LiveJob[]> {
  const jobs: LiveJob[] = [];
  for (const row of await deps.ledger.jobs.unfinished()) {
    if (row.status === 'canceling') await end(row, { status: 'canceled', errorJson: null }, deps);
    else jobs.push(...(await restart(row, deps)));
  }
  return jobs;
}

async function restart(row: JobRow, deps: RecoverOptions): Promise<readonly LiveJob[]> {
  const job = jobFromRow(row);
  if (row.status === 'running' && job.attempts >= MAX_ATTEMPTS) {
    const errorJson = stringifyJson(crashedTooOften(job.attempts));
    await end(row, { status: 'failed', errorJson }, deps);
    return [];
  }
  for (const asset of await deps.ledger.assets.ofJob(row.id)) await deps.assets.removeAsset(asset);
  if (row.status === 'running') await deps.ledger.jobs.update(row.id, toPatch(job));
  return [job];
}

async function end(
  row: JobRow,
  outcome: Pick<JobRow, 'status' | 'errorJson'>,
  { ledger, retentionMs, clock }: RecoverOptions,
): Promise<void> {
  const completedAtMs = clock.now();
  await ledger.jobs.update(row.id, {
    ...outcome,
    completedAtMs,
    expiresAtMs: completedAtMs + retentionMs,
  });
}
