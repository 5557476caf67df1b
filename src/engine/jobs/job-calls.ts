import { readValue } from '../../lib/lazy-json.ts';
import { type JobCalls, ok, refuse } from '../../protocol/job-api.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import { type AcceptOptions, acceptJob } from './accept-job.ts';
import { type JobReaderOptions, createJobReader } from './job-reader.ts';
import type { JobFiles } from '../assets/job-files.ts';
import type { EngineLimits } from '../job-engine.ts';
import type { JobQueue } from './job-queue.ts';
import type { JobRunner } from './job-runner.ts';
import { showJob, unloadJob } from './live-job.ts';

type JobCallsOptions = JobReaderOptions & {
  readonly jobFiles: JobFiles;
  readonly queue: JobQueue;
  readonly runner: JobRunner;
  readonly limits: EngineLimits;
};

/** Accepts, reads and cancels jobs. Workers take them from the queue and run them. */
export function createJobCalls(deps: JobCallsOptions): JobCalls {
  const { ledger, clock, live, queue, runner, limits } = deps;
  const reader = createJobReader(deps);
  const acceptOptions: AcceptOptions = {
    ...deps,
    ...deps.jobFiles,
    withSlot: createSlots(queue, limits.maxQueued),
  };

  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, acceptOptions);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      const workflow = readValue(job.workflow);
      const release = live.add(job);
      const synced = ledger.synced();
      try {
        // The job may run while the disk works.
        unloadJob(job);
        await queue.add([job]);
        const [position = null] = await queue.positions([job.id]);
        const shown = showJob({ ...job, position }, clock.now());
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
      await ((await queue.remove(jobId)) ? runner.cancel(jobId) : live.recordCancel(jobId));
      return await reader.get(caller, jobId);
    },
  };
}

const QUEUE_FULL_RETRY_S = 5;

/**
 * Reserves slots in a queue for jobs that are being accepted. Each process counts only its own
 * reservations. Above the limit, a tenth more is reserved for users without a waiting job, so that
 * the jobs of one user cannot fill the queue.
 */
function createSlots(queue: JobQueue, limit: number): AcceptOptions['withSlot'] {
  const reserved: string[] = [];
  return async (user, insert) => {
    const others = [...reserved];
    reserved.push(user);
    try {
      const { all, own } = await queue.waiting(user);
      const hasWaiting = own > 0 || others.includes(user);
      const allowed = hasWaiting ? limit : limit + Math.ceil(limit / 10);
      if (all + others.length < allowed) return await insert();
      const retryAfterSeconds = QUEUE_FULL_RETRY_S;
      return refuse(429, 'queue_full', 'the queue is full', { retryAfterSeconds });
    } finally {
      reserved.splice(reserved.indexOf(user), 1);
    }
  };
}
