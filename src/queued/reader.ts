import { endedFeed } from '../engine/events.ts';
import { listJobs, notFound } from '../engine/job-reader.ts';
import { factsOf, type JobFacts, showJob } from '../engine/live.ts';
import type { JobRow, Ledger } from '../ledger/ledger.ts';
import { type Caller, type JobApi, ok } from '../wire/jobs.ts';
import { parseJson } from '../wire/json.ts';
import { type Graph, type JobStatus, IS_TERMINAL } from '../wire/v2.ts';
import type { Mirrors } from './mirrors.ts';
import type { RunState, Runs } from './runs.ts';

export type ReaderDeps = {
  readonly ledger: Ledger;
  readonly clock: () => number;
  readonly runs: Pick<Runs, 'read'>;
  readonly mirrors: Pick<Mirrors, 'listen' | 'prepared'>;
};

type Facts = JobFacts & { readonly position: number | null };

/** The reading half of the port for jobs: what the ledger has, and beyond it how a job stands now. */
export function createQueuedReader(
  deps: ReaderDeps,
): Pick<JobApi, 'get' | 'workflow' | 'events' | 'list'> {
  const { ledger, clock, runs, mirrors } = deps;

  async function rowOf({ user }: Caller, id: string): Promise<JobRow | undefined> {
    const row = await ledger.jobs.get(id);
    return row?.user === user ? row : undefined;
  }

  async function facts(rows: readonly JobRow[]): Promise<readonly Facts[]> {
    const live = rows.filter((row) => !isOver(row)).map(({ id }) => id);
    const states = new Map((await runs.read(live)).map((state, i) => [live[i], state]));
    return rows.map((row) => factsNow(row, states.get(row.id)));
  }

  async function find(caller: Caller, id: string): Promise<Facts | undefined> {
    const row = await rowOf(caller, id);
    return row && (await facts([row]))[0];
  }

  return {
    async get(caller, jobId) {
      const job = await find(caller, jobId);
      return job ? ok(showJob(job, clock())) : notFound();
    },
    async workflow(caller, jobId) {
      const row = await rowOf(caller, jobId);
      if (!row) return notFound();
      return ok({ workflow: parseJson(row.workflowJson) as Graph, format: 'api' });
    },
    async events(caller, jobId, signal) {
      const prepared = mirrors.prepared(caller, jobId, signal);
      if (prepared) return ok(prepared);
      const job = await find(caller, jobId);
      if (!job) return notFound();
      if (!IS_TERMINAL[job.status]) return ok(await mirrors.listen(jobId, signal));
      const { status, x_cached_nodes: cached } = showJob(job, clock());
      const more = cached && { x_cached_nodes: cached };
      return ok(endedFeed({ status, queue_position: null, ...more }));
    },
    list: ({ user }, query) => listJobs(user, query, { ledger, clock, facts }),
  };
}

/** A row says less than its run until the end is written into it. */
function factsNow(row: JobRow, run: RunState | undefined): Facts {
  if (run === undefined) return { ...factsOf(row), position: null };
  const { end, position, isCancelAsked: _, ...state } = run;
  if (end) return { ...factsOf({ ...row, ...end }), position: null };
  return { ...factsOf(row), ...state, position };
}

function isOver(row: JobRow): boolean {
  return IS_TERMINAL[row.status as JobStatus];
}
