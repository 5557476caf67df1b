import type { Logger } from '../telemetry.ts';
import { jobError } from './failure.ts';
import type { LiveJob, StopReason } from './live.ts';
import { createQueue } from './queue.ts';
import type { Registry } from './registry.ts';
import { runOnWorker, type RunnerDeps } from './runner.ts';
import { hasRoom } from './turns.ts';
import type { WorkerSlot } from './worker-slot.ts';

export type DispatchDeps = {
  readonly registry: Registry;
  readonly log: Logger;
  /** The jobs that are not over, by id; kept up to date here. */
  readonly live: Map<string, LiveJob>;
  readonly slots: readonly WorkerSlot[];
  readonly maxQueued: number;
  readonly runner: RunnerDeps;
  readonly clock: () => number;
  /** A job ended: what it lists must live as long as it does. */
  onEnd(job: LiveJob): Promise<void>;
};

/** Owns the jobs that are not over: their queue, their workers, their end. */
export type Dispatcher = {
  add(job: LiveJob): void;
  cancel(job: LiveJob): Promise<void>;
  readonly reserve: (user: string) => { release(): void } | undefined;
  readonly lastPlace: () => number;
  start(): void;
  close(): Promise<void>;
};

/** A worker, the job it has, and whose the one before was. */
export type Desk = {
  readonly slot: WorkerSlot;
  job: LiveJob | undefined;
  lastUser: string | undefined;
};

/** Nothing runs before `start`. */
export function createDispatcher(deps: DispatchDeps): Dispatcher {
  const { registry, clock, live } = deps;
  const desks = deps.slots.map((slot): Desk => ({ slot, job: undefined, lastUser: undefined }));
  const queue = createQueue<LiveJob>(announceMoves);
  const running = new Set<Promise<void>>();
  const reserved: string[] = [];
  let open = false;

  const runAt = async (desk: Desk, job: LiveJob): Promise<void> => {
    job.status = 'running';
    job.position = null;
    job.startedAtMs = clock();
    const end = await runOnWorker(job, desk.slot, deps.runner);
    if (end.status === 'interrupted') return await registry.suspend(job);
    await registry.finish(job, end);
    await deps.onEnd(job);
  };
  const rescue = async (job: LiveJob, cause: unknown): Promise<void> => {
    deps.log.error({ err: cause, job: job.id }, 'a job could not be run to its end');
    if (!live.has(job.id)) return;
    const message = 'the engine failed to run this job';
    await registry.finish(job, {
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
      queue.ended(job);
      schedule();
    }
  };
  const pump = (): void => {
    for (let job = takeNext(); job; job = takeNext()) {
      const desk = chooseDesk(desks, job.user);
      if (!desk) return;
      desk.job = job;
      const run = occupy(desk, job).finally(() => running.delete(run));
      running.add(run);
    }
  };
  const takeNext = (): LiveJob | undefined =>
    open && desks.some((desk) => !desk.job) ? queue.take() : undefined;
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
    reserve(user) {
      const waiting = queue.count() + reserved.length;
      const ofUser = queue.countOf(user) + reserved.filter((other) => other === user).length;
      if (!hasRoom({ waiting, ofUser, limit: deps.maxQueued })) return undefined;
      reserved.push(user);
      return { release: () => void reserved.splice(reserved.indexOf(user), 1) };
    },
    async cancel(job) {
      job.stop.abort('canceled' satisfies StopReason);
      if (queue.remove(job.id)) return await registry.finish(job, { status: 'canceled' });
      if (job.status === 'running' && !registry.isEnding(job)) {
        job.status = 'canceling';
        job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
      }
      await registry.save(job);
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

function announceMoves(waiting: readonly LiveJob[]): void {
  for (const [position, job] of waiting.entries()) {
    if (job.position === position) continue;
    job.position = position;
    job.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }
}

/** The worker that last served this user holds that user's cache. */
export function chooseDesk(desks: readonly Desk[], user: string): Desk | undefined {
  const free = desks.filter((desk) => !desk.job);
  return (
    free.find((desk) => desk.lastUser === user) ??
    free.find((desk) => desk.lastUser === undefined) ??
    free[0]
  );
}
