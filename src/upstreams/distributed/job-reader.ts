import type { Clock } from '../../lib/clock.ts';
import { endedJobEvents } from '../job-feed.ts';
import { listJobs, notFound } from '../jobs/job-reader.ts';
import { jobStateOf, type JobState, showJob } from '../jobs/live-job.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import { type Caller, type JobApi, ok } from '../../protocol/job-api.ts';
import { parseJson } from '../../protocol/json.ts';
import { type Graph, type JobStatus, IS_TERMINAL } from '../../protocol/v2.ts';
import type { EventMirrors } from './event-mirrors.ts';
import type { RunState } from '../distributed-state/run-fields.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';

export type DistributedReaderOptions = {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly runState: Pick<RunStateStore, 'read'>;
  readonly eventMirrors: Pick<EventMirrors, 'subscribe' | 'prepared'>;
};

type QueuedJobState = JobState & { readonly position: number | null };

/**
 * The reading half of the port for jobs: the ledger's rows, and the current state of unfinished
 * jobs.
 */
export function createDistributedReader(
  deps: DistributedReaderOptions,
): Pick<JobApi, 'get' | 'workflow' | 'events' | 'list'> {
  const { ledger, clock, runState, eventMirrors } = deps;

  async function rowOf({ user }: Caller, id: string): Promise<JobRow | undefined> {
    const row = await ledger.jobs.get(id);
    return row?.user === user ? row : undefined;
  }

  async function statesOf(rows: readonly JobRow[]): Promise<readonly QueuedJobState[]> {
    const live = rows.filter((row) => !isOver(row)).map(({ id }) => id);
    const states = new Map((await runState.read(live)).map((state, i) => [live[i], state]));
    return rows.map((row) => currentState(row, states.get(row.id)));
  }

  async function find(caller: Caller, id: string): Promise<QueuedJobState | undefined> {
    const row = await rowOf(caller, id);
    return row && (await statesOf([row]))[0];
  }

  return {
    async get(caller, jobId) {
      const job = await find(caller, jobId);
      return job ? ok(showJob(job, clock.now())) : notFound();
    },
    async workflow(caller, jobId) {
      const row = await rowOf(caller, jobId);
      if (!row) return notFound();
      return ok({ workflow: parseJson(row.workflowJson) as Graph, format: 'api' });
    },
    async events(caller, jobId, signal) {
      const prepared = eventMirrors.prepared(caller, jobId, signal);
      if (prepared) return ok(prepared);
      const job = await find(caller, jobId);
      if (!job) return notFound();
      if (!IS_TERMINAL[job.status]) return ok(await eventMirrors.subscribe(jobId, signal));
      const { status, x_cached_nodes: cached } = showJob(job, clock.now());
      const more = cached && { x_cached_nodes: cached };
      return ok(endedJobEvents({ status, queue_position: null, ...more }));
    },
    list: ({ user }, query) => listJobs(user, query, { ledger, clock, facts: statesOf }),
  };
}

/** Until the end is stored in the row, the run state is newer than the row. */
function currentState(row: JobRow, run: RunState | undefined): QueuedJobState {
  if (run === undefined) return { ...jobStateOf(row), position: null };
  const { end, position, isCancelAsked: _, ...state } = run;
  if (end) return { ...jobStateOf({ ...row, ...end }), position: null };
  return { ...jobStateOf(row), ...state, position };
}

function isOver(row: JobRow): boolean {
  return IS_TERMINAL[row.status as JobStatus];
}
