import { readValue } from '../../lib/lazy-json.ts';
import { ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type JobStatus } from '../../protocol/v2.ts';
import { jobFromRow, jobStateOf, showJob, toPatch } from '../jobs/live-job.ts';
import { createJobReader, notFound } from '../jobs/job-reader.ts';
import { toEndedJob } from '../jobs/job-lifecycle.ts';
import { type AcceptOptions, acceptJob } from '../jobs/accept-job.ts';
import { createReservations } from '../jobs/fair-order.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { EventMirrors } from './event-mirrors.ts';
import type { RunState } from '../distributed-state/run-fields.ts';
import type { JobCalls } from '../job-engine.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';
import type { JobQueue } from '../jobs/job-queue.ts';

export type JobApiOptions = Omit<AcceptOptions, 'reserve' | 'nextOrder'> & {
  readonly runState: RunStateStore;
  readonly eventMirrors: EventMirrors;
  readonly queue: JobQueue;
  readonly maxQueued: number;
};

/** Accepts, reads and cancels jobs; workers take them from the queue and run them. */
export function createJobApi(deps: JobApiOptions): JobCalls {
  const { ledger, runState, queue, eventMirrors, clock } = deps;
  const reader = createJobReader({
    ledger,
    clock,
    statesOf: (rows) => statesOf(rows, deps),
    ownEvents: (caller, id, signal) => eventMirrors.ofSubmitter(caller, id, signal),
    subscribe: (id, signal) => eventMirrors.subscribe(id, signal),
  });
  const acceptOptions = {
    ...deps,
    reserve: createReservations(queue, deps.maxQueued),
    nextOrder: () => queue.nextOrder(),
  };

  /** Ends a job that no worker runs. The new fence makes writes of an earlier worker stale. */
  async function endWaiting(row: JobRow): Promise<void> {
    const claim = await runState.seize(row.id);
    if (claim.kind === 'ended') return;
    const job = jobFromRow(row);
    const at = {
      end: { status: 'canceled' },
      atMs: clock.now(),
      retentionMs: deps.retentionMs,
    } as const;
    const patch = toPatch(toEndedJob(job, at));
    if ((await runState.end({ id: row.id, fence: claim.fence }, patch)) !== 'ok') return;
    await ledger.jobs.update(row.id, patch);
    await runState.expire(row.id);
  }

  /** The request is on record: a worker that gets the job ends it, even when it receives no message. */
  async function cancelJob(row: JobRow): Promise<void> {
    if (isOver(row) || !(await queue.cancel(row.id))) return;
    if (await queue.remove(row.id)) await endWaiting(row);
  }

  return {
    ...reader,
    async submit(caller, request) {
      const accepted = await acceptJob(caller, request, acceptOptions);
      if (!accepted.ok) return accepted;
      const job = accepted.value;
      eventMirrors.submitted(job.user, job.id);
      await queue.add([job]);
      const [position = null] = await queue.positions([job.id]);
      return ok({
        ...showJob({ ...job, position }, clock.now()),
        x_workflow: readValue(job.workflow),
      });
    },
    async cancel(caller, jobId) {
      const row = await ledger.jobs.get(jobId);
      if (row?.user !== caller.user) return notFound();
      await cancelJob(row);
      return await reader.get(caller, jobId);
    },
  };
}

/** The ledger's rows, with the current state of unfinished jobs. */
async function statesOf(rows: readonly JobRow[], { runState, queue }: JobApiOptions) {
  const live = rows.filter((row) => !isOver(row)).map(({ id }) => id);
  const [runs, positions] = await Promise.all([runState.read(live), queue.positions(live)]);
  const at = new Map(live.map((id, i) => [id, i]));
  return rows.map((row) => {
    const i = at.get(row.id) ?? -1;
    return currentState(row, runs[i], positions[i] ?? null);
  });
}

/** Until the end is stored in the row, the run state is newer than the row. */
function currentState(row: JobRow, run: RunState | undefined, position: number | null) {
  if (run === undefined) return { ...jobStateOf(row), position: null };
  const { end, ...state } = run;
  if (end) return { ...jobStateOf({ ...row, ...end }), position: null };
  return { ...jobStateOf(row), ...state, position };
}

function isOver(row: JobRow): boolean {
  return IS_TERMINAL[row.status as JobStatus];
}
