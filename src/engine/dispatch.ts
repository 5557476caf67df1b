import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { jobError } from './failure.ts';
import { type LiveJob, type StopReason, toPatch } from './live.ts';
import type { Locks } from './locks.ts';
import { createQueue } from './queue.ts';
import { jobLock } from './retention.ts';
import { type JobEnd, runOnWorker, type RunnerDeps } from './runner.ts';
import type { WorkerSlot } from './worker-slot.ts';

export type DispatchDeps = {
  readonly ledger: Ledger;
  readonly locks: Locks;
  readonly log: Logger;
  /** The jobs that are not over, by id; kept up to date here. */
  readonly live: Map<string, LiveJob>;
  readonly slots: readonly WorkerSlot[];
  readonly maxQueued: number;
  readonly retentionMs: number;
  readonly runner: RunnerDeps;
  readonly clock: () => number;
  /** A job ended: what it lists must live as long as it does. */
  onEnd(job: LiveJob): Promise<void>;
};

type StoredEnd = Exclude<JobEnd, { status: 'interrupted' }>;

/** Owns the jobs that are not over: their queue, their workers, their end. */
export type Dispatcher = {
  add(job: LiveJob): void;
  cancel(job: LiveJob): Promise<void>;
  readonly reserve: () => { release(): void } | undefined;
  readonly lastPlace: () => number;
  start(): void;
  close(): Promise<void>;
};

type Desk = { readonly slot: WorkerSlot; job: LiveJob | undefined; lastUser: string | undefined };

/** Nothing runs before `start`. */
export function createDispatcher(deps: DispatchDeps): Dispatcher {
  const { ledger, locks, clock, live } = deps;
  const desks = deps.slots.map((slot): Desk => ({ slot, job: undefined, lastUser: undefined }));
  const queue = createQueue<LiveJob>(announceMoves);
  const running = new Set<Promise<void>>();
  /** Jobs whose end is being written: nothing about them changes any more. */
  const ending = new Set<string>();
  let reserved = 0;
  let open = false;

  const save = (job: LiveJob): Promise<void> =>
    locks(jobLock(job.id), async () => {
      if (live.has(job.id)) await ledger.jobs.update(job.id, toPatch(job));
    });
  /** The end is durable before anyone is told of it. */
  const finish = (job: LiveJob, end: StoredEnd): Promise<void> =>
    locks(jobLock(job.id), async () => {
      ending.add(job.id);
      const final = ended(job, { end, atMs: clock(), retentionMs: deps.retentionMs });
      await ledger.jobs.update(job.id, toPatch(final));
      Object.assign(job, final, { position: null });
      live.delete(job.id);
      ending.delete(job.id);
      job.feed.emit({ event: 'status', data: { status: job.status, queue_position: null } });
      job.feed.end();
    });

  const runAt = async (desk: Desk, job: LiveJob): Promise<void> => {
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock();
    job.attempts++;
    await save(job);
    const end = await runOnWorker(job, desk.slot, deps.runner);
    if (end.status === 'interrupted') return await suspend(job);
    await finish(job, end);
    await deps.onEnd(job);
  };
  /** The next boot runs the job again, and a stop in good order is no failed attempt. */
  const suspend = async (job: LiveJob): Promise<void> => {
    Object.assign(job, {
      status: 'queued',
      startedAtMs: null,
      outputs: [],
      ui: {},
      progress: null,
      cachedNodes: null,
    });
    job.attempts--;
    await save(job);
    job.feed.end();
  };
  const rescue = async (job: LiveJob, cause: unknown): Promise<void> => {
    deps.log.error({ err: cause, job: job.id }, 'a job could not be run to its end');
    const message = 'the engine failed to run this job';
    await finish(job, {
      status: 'failed',
      error: jobError('internal_error', message, { exceptionType: 'RuntimeError' }),
    });
  };
  const occupy = async (desk: Desk, job: LiveJob): Promise<void> => {
    try {
      await runAt(desk, job).catch((cause) => rescue(job, cause));
    } catch (cause) {
      deps.log.error({ err: cause, job: job.id }, 'the end of a job could not be stored');
      job.feed.end();
    } finally {
      desk.job = undefined;
      desk.lastUser = job.user;
      schedule();
    }
  };
  const pump = (): void => {
    for (let job = takeFor(desks); job; job = takeFor(desks)) {
      const desk = chooseDesk(desks, job.user);
      if (!desk) return;
      desk.job = job;
      const run = occupy(desk, job).finally(() => running.delete(run));
      running.add(run);
    }
  };
  const takeFor = (all: readonly Desk[]): LiveJob | undefined =>
    open && all.some((desk) => !desk.job) ? queue.take() : undefined;
  /** Never at once: whoever has just submitted a job shall be able to listen before it starts. */
  const schedule = (): void => {
    setImmediate(pump);
  };

  return {
    lastPlace: queue.lastPlace,
    add(job) {
      live.set(job.id, job);
      queue.add(job);
      schedule();
    },
    reserve() {
      if (queue.waiting().length + reserved >= deps.maxQueued) return undefined;
      reserved++;
      return { release: () => void reserved-- };
    },
    async cancel(job) {
      job.stop.abort('canceled' satisfies StopReason);
      if (queue.remove(job.id)) return await finish(job, { status: 'canceled' });
      if (job.status === 'running' && !ending.has(job.id)) {
        job.status = 'canceling';
        job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
      }
      await save(job);
    },
    start() {
      open = true;
      for (const { slot } of desks) slot.warm();
      schedule();
    },
    async close() {
      open = false;
      for (const desk of desks) desk.job?.stop.abort('shutdown' satisfies StopReason);
      await Promise.all(running);
      await Promise.all(desks.map(({ slot }) => slot.kill()));
      for (const job of live.values()) job.feed.end();
    },
  };
}

/** A cancel that came while the last node was finishing still counts. */
function ended(job: LiveJob, at: { end: StoredEnd; atMs: number; retentionMs: number }): LiveJob {
  const isCanceled = job.stop.signal.aborted && job.stop.signal.reason === 'canceled';
  const end: StoredEnd = isCanceled ? { status: 'canceled' } : at.end;
  return {
    ...job,
    status: end.status,
    error: end.status === 'failed' ? end.error : null,
    completedAtMs: at.atMs,
    expiresAtMs: at.atMs + at.retentionMs,
  };
}

function announceMoves(waiting: readonly LiveJob[]): void {
  for (const [position, job] of waiting.entries()) {
    if (job.position === position) continue;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }
}

/** The worker that last served this user holds that user's cache. */
function chooseDesk(desks: readonly Desk[], user: string): Desk | undefined {
  const free = desks.filter((desk) => !desk.job);
  return (
    free.find((desk) => desk.lastUser === user) ??
    free.find((desk) => desk.lastUser === undefined) ??
    free[0]
  );
}
