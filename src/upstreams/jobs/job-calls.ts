import type { Clock } from '../../lib/clock.ts';
import { readValue } from '../../lib/lazy-json.ts';
import { reached } from '../../lib/crash-point.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job } from '../../protocol/v2.ts';
import type { JobCalls } from '../job-engine.ts';
import { type AcceptOptions, acceptJob } from './accept-job.ts';
import { createJobReader } from './job-reader.ts';
import type { JobQueue } from './job-queue.ts';
import type { JobRunner } from './job-runner.ts';
import { type LiveJob, showJob, unloadJob } from './live-job.ts';
import type { RunStore } from './run-store.ts';

export type JobCallsOptions = Pick<
  AcceptOptions,
  'nodes' | 'retentionMs' | 'fileLookupOf' | 'holdAssets'
> & {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly runs: RunStore;
  readonly queue: JobQueue;
  readonly runner: Pick<JobRunner, 'end'>;
  readonly maxQueued: number;
};

/** Accepts, reads and cancels jobs. Workers take them from the queue and run them. */
export function createJobCalls(deps: JobCallsOptions): JobCalls {
  const { ledger, clock, runs, queue, runner } = deps;
  const reader = createJobReader({ ledger, clock, ...runs });
  const acceptOptions: AcceptOptions = {
    ...deps,
    reserve: createReservations(queue, deps.maxQueued),
    nextOrder: () => queue.nextOrder(),
    durability: 'soon',
    ...(queue.slots && { slots: queue.slots }),
  };

  /**
   * Queues a job, or starts it in the slot that was reserved for it. Returns the job as it is
   * before.
   */
  async function enqueue(job: LiveJob): Promise<Job> {
    // It is recorded as begun, so no other job waits.
    if (!job.hasBegun) unloadJob(job);
    const shown = job.hasBegun && showJob({ ...job, position: 0 }, clock.now());
    await queue.add([job]);
    if (shown) {
      reached('after-run-begin');
      return shown;
    }
    const [position = null] = await queue.positions([job.id]);
    return showJob({ ...job, position }, clock.now());
  }

  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, acceptOptions);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      const workflow = readValue(job.workflow);
      const release = runs.add(job);
      const synced = ledger.synced();
      try {
        // The job may run while the disk works.
        const shown = await enqueue(job);
        await synced;
        return ok(Object.assign(shown, { x_workflow: workflow }));
      } finally {
        release();
      }
    },
    async cancel(caller, jobId) {
      const found = await reader.get(caller, jobId);
      // The request is recorded: a worker that gets the job ends it.
      if (!found.ok || IS_TERMINAL[found.value.status]) return found;
      if (!(await queue.cancel(jobId))) return await reader.get(caller, jobId);
      if (await queue.remove(jobId)) {
        const job = await runs.seize(jobId);
        if (job) await runner.end(job, { status: 'canceled' });
      } else await runs.recordCancel(jobId);
      return await reader.get(caller, jobId);
    },
  };
}

/**
 * Reserves slots in a queue for jobs that are being accepted. Each process counts only its own
 * reservations.
 */
function createReservations(queue: Pick<JobQueue, 'waiting' | 'waitingOf'>, limit: number) {
  const reserved: string[] = [];
  /** Reserves a slot for a job of this user; `undefined` when the queue is full. */
  return async (user: string): Promise<{ release(): void } | undefined> => {
    const others = [...reserved];
    reserved.push(user);
    const release = (): void => void reserved.splice(reserved.indexOf(user), 1);
    try {
      const [all, own] = await Promise.all([queue.waiting(), queue.waitingOf(user)]);
      const waiting = all + others.length;
      const ofUser = own + others.filter((other) => other === user).length;
      if (hasQueueCapacity({ waiting, ofUser, limit })) return { release };
    } catch (error) {
      release();
      throw error;
    }
    release();
    return undefined;
  };
}

/**
 * True when another job of a user may wait. Above the limit, a tenth more is reserved for users
 * without a waiting job, so that the jobs of one user cannot fill the queue.
 * @internal
 */
export function hasQueueCapacity({
  waiting,
  ofUser,
  limit,
}: {
  readonly waiting: number;
  readonly ofUser: number;
  readonly limit: number;
}): boolean {
  return waiting < (ofUser > 0 ? limit : limit + Math.ceil(limit / 10));
}
