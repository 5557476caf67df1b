import { reached } from '../crash-point.ts';
import { ok, type JobApi } from '../wire/jobs.ts';
import type { JobStatus } from '../wire/v2.ts';
import { IS_TERMINAL } from '../wire/v2.ts';
import { type LiveJob, requeue, showJob, toPatch } from '../engine/live.ts';
import { notFound } from '../engine/job-reader.ts';
import { ended } from '../engine/registry.ts';
import { type SubmitDeps, acceptJob } from '../engine/submit.ts';
import { hasRoom } from '../engine/turns.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import type { Mirrors } from './mirrors.ts';
import { type ReaderDeps, createQueuedReader } from './reader.ts';
import type { Runs } from './runs.ts';
import type { Tickets } from './tickets.ts';

export type FrontDeps = Omit<SubmitDeps, 'reserve' | 'lastPlace'> &
  ReaderDeps & {
    readonly ledger: Ledger;
    readonly runs: Runs;
    readonly mirrors: Mirrors;
    readonly tickets: Tickets;
    readonly maxQueued: number;
  };

type JobHalf = Pick<
  JobApi,
  'submit' | 'recover' | 'get' | 'workflow' | 'events' | 'cancel' | 'list'
>;

/** Takes jobs and tells of them; whoever takes them from the queue runs them. */
export function createFront(deps: FrontDeps): JobHalf {
  const { ledger, runs, tickets, mirrors, clock } = deps;
  const reader = createQueuedReader(deps);
  const accept = { ...deps, reserve: createReserve(deps), lastPlace: () => runs.lastPlace() };

  async function enqueue(job: LiveJob): Promise<void> {
    await mirrors.prepare(job.user, job.id);
    await runs.enter(job);
    reached('after-queue-entry');
    await tickets.add([job]);
  }

  /** Only a job nobody runs can be ended here; whoever had it before is not heard any more. */
  async function endWaiting(row: JobRow): Promise<void> {
    const claim = await runs.seize(row.id);
    if (claim.kind === 'ended') return;
    const job = requeue(row);
    const at = {
      end: { status: 'canceled' },
      atMs: clock(),
      retentionMs: deps.retentionMs,
    } as const;
    const patch = toPatch(ended(job, at));
    if ((await runs.end({ id: row.id, fence: claim.fence }, patch)) !== 'ok') return;
    await ledger.jobs.update(row.id, patch);
    await runs.leave(row.id);
  }

  /** True when no worker has a job, nor gets it any more. */
  async function takeBack(id: string): Promise<boolean> {
    const isWaiting = await runs.withdraw(id);
    const ticket = (isWaiting ? undefined : await runs.ticketOf(id)) ?? id;
    // Another job may have been taken by the ticket of that name. One ticket too many does no harm.
    const isOthers = ![undefined, id].includes(await runs.takenBy(ticket));
    const isRemoved = !isOthers && (await tickets.remove(ticket));
    return isWaiting || isRemoved;
  }

  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, accept);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      await enqueue(job);
      const position = await runs.position(job.id);
      return ok({ ...showJob({ ...job, position }, clock()), x_workflow: job.workflow });
    },
    async recover(caller, { metadata }) {
      const page = await reader.list(caller, { limit: 1, ...(metadata && { metadata }) });
      return page.ok
        ? ok({ job: page.value.jobs[0] ?? null, isCertain: true, isListed: true })
        : page;
    },
    async cancel(caller, jobId) {
      const row = await ledger.jobs.get(jobId);
      if (row?.user !== caller.user) return notFound();
      const isOver = IS_TERMINAL[row.status as JobStatus];
      if (!isOver && (await runs.askCancel(jobId)) && (await takeBack(jobId))) {
        await endWaiting(row);
      }
      return await reader.get(caller, jobId);
    },
  };
}

/** Places are counted where the queue is; what other processes accept at this very moment is not known here. */
function createReserve({ runs, maxQueued: limit }: FrontDeps): SubmitDeps['reserve'] {
  const reserved: string[] = [];
  return async (user) => {
    const others = [...reserved];
    reserved.push(user);
    const release = (): void => void reserved.splice(reserved.indexOf(user), 1);
    try {
      const [all, own] = await Promise.all([runs.waiting(), runs.waitingOf(user)]);
      const waiting = all + others.length;
      const ofUser = own + others.filter((other) => other === user).length;
      if (hasRoom({ waiting, ofUser, limit })) return { release };
    } catch (error) {
      release();
      throw error;
    }
    release();
    return undefined;
  };
}
