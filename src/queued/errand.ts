import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from '../engine/answers.ts';
import type { Assets } from '../engine/assets.ts';
import { type Desk, chooseDesk } from '../engine/dispatch.ts';
import { jobError } from '../engine/failure.ts';
import type { Holds } from '../engine/holds.ts';
import { type LiveJob, type StopReason, requeue, toEndPatch } from '../engine/live.ts';
import { type FinalEnd, ended } from '../engine/registry.ts';
import { type JobEnd, type RunnerDeps, runOnWorker } from '../engine/runner.ts';
import type { WorkerSlot } from '../engine/worker-slot.ts';
import { reached } from '../crash-point.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import { type JobStatus, IS_TERMINAL } from '../wire/v2.ts';
import { type Publisher, createPublisher } from './publisher.ts';
import type { EndPatch, Heard, Held, Runs } from './runs.ts';

export type ErrandDeps = {
  readonly ledger: Ledger;
  readonly runs: Runs;
  readonly assets: Pick<Assets, 'discard'>;
  readonly holds: Pick<Holds, 'extend'>;
  readonly slots: readonly WorkerSlot[];
  readonly runner: Omit<RunnerDeps, 'answer'> & { readonly answer: Answer };
  readonly retentionMs: number;
  readonly clock: () => number;
  readonly log: Logger;
};

/** Runs jobs a worker took from the queue, each under the fence it was given. */
export type Errands = {
  /** Runs the job whose turn it is. `over`: nothing is left to do; `interrupted`: the job was given back. */
  run(ticket: string): Promise<Outcome>;
  /** A job was asked to stop. */
  cancel(id: string): void;
  /** Somebody else may have this job by now. */
  lose(id: string): void;
  /** The jobs that run here. */
  ids(): readonly string[];
  /** The fence this run of a job is under, as far as is known here. */
  held(job: LiveJob): Held | undefined;
  interruptAll(): void;
};

type Errand = {
  readonly held: Held;
  readonly job: LiveJob;
  readonly publisher: Publisher;
  isLost: boolean;
  /** Not all it told was taken down: listeners do not have what its end stands on. */
  isUnheard: boolean;
  isEnding: boolean;
};

type Outcome = 'over' | 'interrupted';

/** How often a job is given back to a Redis that takes no writes. */
const AGAIN_MS = 1000;

export function createErrands(deps: ErrandDeps): Errands {
  const { ledger, runs, clock } = deps;
  const desks = deps.slots.map((slot): Desk => ({ slot, job: undefined, lastUser: undefined }));
  const errands = new Map<string, Errand>();
  let isClosing = false;

  function stop(errand: Errand, reason: StopReason): void {
    errand.job.stop.abort(reason);
  }

  function lose(errand: Errand): void {
    if (!errand.isLost)
      deps.log.warn({ job: errand.held.id }, 'a job may be taken over from here: its lock is lost');
    errand.isLost = true;
    stop(errand, 'shutdown');
  }

  function cancel(errand: Errand): void {
    const { job } = errand;
    stop(errand, 'canceled');
    if (job.status !== 'running' || errand.isEnding) return;
    job.status = 'canceling';
    job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
  }

  function hear(errand: Errand, heard: Heard): void {
    if (heard === 'stale') lose(errand);
    if (heard === 'cancel') cancel(errand);
  }

  function createErrand(row: JobRow, claim: { fence: number; attempts: number }): Errand {
    const held = { id: row.id, fence: claim.fence };
    const publisher = createPublisher({
      runs,
      held,
      clock,
      job: () => errand.job,
      onHeard: (heard) => hear(errand, heard),
      onError(error) {
        deps.log.error({ err: error, job: row.id }, 'events of a job could not be told');
        errand.isUnheard = true;
        stop(errand, 'shutdown');
      },
    });
    const state = { status: 'running', startedAtMs: clock(), attempts: claim.attempts } as const;
    const job: LiveJob = { ...requeue(row), ...state, feed: publisher.feed };
    const errand: Errand = {
      held,
      job,
      publisher,
      isLost: false,
      isUnheard: false,
      isEnding: false,
    };
    return errand;
  }

  async function discard(jobId: string, keep: ReadonlySet<string>): Promise<void> {
    for (const asset of await ledger.assets.ofJob(jobId)) {
      if (!keep.has(asset.id)) await deps.assets.discard(asset);
    }
  }

  /** A worker that has lost its job takes back what it made of it since. */
  async function withdraw(errand: Errand): Promise<void> {
    const { job, held } = errand;
    lose(errand);
    for (const { id, job_id: maker } of job.outputs) {
      const row = maker === job.id ? await ledger.assets.get(id) : undefined;
      if (row) await deps.assets.discard(row);
    }
    await runs.stillAlive(held);
  }

  async function record(id: string, patch: EndPatch): Promise<void> {
    await ledger.jobs.update(id, patch);
    await runs.leave(id);
  }

  /** First for all processes at once, then in the ledger; who dies in between leaves it to the next. */
  async function finish(held: Held, job: LiveJob, end: FinalEnd): Promise<Heard> {
    const final = ended(job, { end, atMs: clock(), retentionMs: deps.retentionMs });
    const patch = await toEndPatch(final);
    const heard = await runs.end(held, patch);
    if (heard === 'cancel') return await finish(held, job, { status: 'canceled' });
    if (heard === 'stale') return heard;
    reached('after-job-end-decided');
    await record(job.id, patch);
    reached('after-job-end');
    await deps.holds.extend(final);
    await discard(job.id, new Set(job.outputs.map((output) => output.id)));
    return heard;
  }

  /** A try is used up by what was not heard, as by a worker that dies; else it is as if never run. */
  async function handBack(errand: Errand): Promise<Outcome> {
    const { held, job, isUnheard } = errand;
    // What it made so far is discarded by whoever takes it next.
    while (!errand.isLost) {
      try {
        await runs.handBack(held, { order: job.order, triesBack: isUnheard ? 0 : 1 });
        break;
      } catch (error) {
        if (isClosing) throw error;
        await delay(AGAIN_MS);
      }
    }
    // An answer that was lost and asked for again is no sign that somebody else has it.
    return 'interrupted';
  }

  async function conclude(errand: Errand, end: JobEnd): Promise<Outcome> {
    const { held, job, isUnheard } = errand;
    if (!errand.isLost) {
      if (end.status === 'interrupted') return await handBack(errand);
      if (isUnheard && end.status !== 'canceled') return await handBack(errand);
      if ((await finish(held, job, end)) !== 'stale') return 'over';
    }
    await withdraw(errand);
    return 'over';
  }

  async function work(errand: Errand): Promise<Outcome> {
    const { job, publisher } = errand;
    const desk = chooseDesk(desks, job.user);
    if (!desk) throw new Error('a job was taken although all workers are busy');
    desk.job = job;
    try {
      await discard(job.id, new Set());
      const end = await runOnWorker(job, desk.slot, deps.runner).catch((cause: unknown) => {
        deps.log.error({ err: cause, job: job.id }, 'a job could not be run to its end');
        return BROKEN;
      });
      errand.isEnding = true;
      await publisher.drain();
      return await conclude(errand, end);
    } finally {
      desk.job = undefined;
      desk.lastUser = job.user;
    }
  }

  async function start(row: JobRow): Promise<Outcome> {
    const { id } = row;
    const claim = await runs.claim(id, clock());
    reached('after-claim');
    if (claim.kind === 'ended') {
      await record(id, claim.patch);
      await runs.drop(id);
      return 'over';
    }
    const held = { id, fence: claim.fence };
    if (claim.kind !== 'run') {
      await discard(id, new Set());
      const end = claim.kind === 'cancel' ? CANCELED : lost(claim.attempts);
      // That it began is known; when its last run did is not.
      const startedAtMs = claim.kind === 'cancel' ? null : clock();
      await finish(held, { ...requeue(row), startedAtMs }, end);
      return 'over';
    }
    const errand = createErrand(row, claim);
    // A job can come back to a worker that has not yet noticed that it lost it.
    withErrand(id, lose);
    errands.set(id, errand);
    try {
      return await work(errand);
    } finally {
      if (errands.get(id) === errand) errands.delete(id);
    }
  }

  return {
    async run(ticket) {
      const id = await runs.take(ticket);
      if (id === undefined) return 'over';
      const row = await ledger.jobs.get(id);
      if (row && !IS_TERMINAL[row.status as JobStatus]) return await start(row);
      await runs.drop(id, ticket);
      return 'over';
    },
    cancel: (id) => withErrand(id, cancel),
    lose: (id) => withErrand(id, lose),
    ids: () => [...errands.keys()],
    held(job) {
      const errand = errands.get(job.id);
      return errand?.job === job && !errand.isLost ? errand.held : undefined;
    },
    interruptAll() {
      isClosing = true;
      for (const errand of errands.values()) stop(errand, 'shutdown');
    },
  };

  function withErrand(id: string, act: (errand: Errand) => void): void {
    const errand = errands.get(id);
    if (errand) act(errand);
  }
}

const CANCELED = { status: 'canceled' } as const;

const BROKEN: FinalEnd = {
  status: 'failed',
  error: jobError('internal_error', 'the engine failed to run this job', {
    exceptionType: 'RuntimeError',
  }),
};

function lost(attempts: number): FinalEnd {
  const message = `the server died ${attempts} times while running this job`;
  const error = jobError('worker_lost', message, { exceptionType: 'RuntimeError' });
  return { status: 'failed', error };
}
