import type { Clock } from '../../lib/clock.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import {
  type Caller,
  type JobApi,
  type JobListQuery,
  ok,
  refuse,
  type Result,
} from '../../protocol/job-api.ts';
import { parseJson } from '../../protocol/json.ts';
import type { Graph } from '../../protocol/v2.ts';
import { endedJobEvents } from '../job-feed.ts';
import { jobStateOf, type JobState, type LiveJob, showJob } from './live-job.ts';

const DEFAULT_PAGE = 50;
const SCAN_PAGE = 100;

export type JobReaderOptions = {
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** An unfinished job. */
  readonly find: (id: string) => LiveJob | undefined;
};

/**
 * The reading half of the port for jobs. Unfinished jobs are read from memory, finished ones from
 * the ledger.
 */
export function createJobReader(
  deps: JobReaderOptions,
): Pick<JobApi, 'get' | 'workflow' | 'events' | 'list'> {
  const { ledger, clock, find } = deps;
  const facts = async ({ user }: Caller, id: string): Promise<JobState | undefined> => {
    const live = find(id);
    if (live) return live.user === user ? live : undefined;
    const row = await ledger.jobs.get(id);
    return row?.user === user ? jobStateOf(row) : undefined;
  };
  return {
    async get(caller, jobId) {
      const job = await facts(caller, jobId);
      return job ? ok(showJob(job, clock.now())) : notFound();
    },
    async workflow({ user }, jobId) {
      const row = await ledger.jobs.get(jobId);
      if (row?.user !== user) return notFound();
      return ok({ workflow: parseJson(row.workflowJson) as Graph, format: 'api' });
    },
    async events(caller, jobId, signal) {
      const live = find(jobId);
      if (live?.user === caller.user) return ok(live.feed.subscribe(signal));
      const job = await facts(caller, jobId);
      if (!job) return notFound();
      const { status, x_cached_nodes: cached } = showJob(job, clock.now());
      return ok(
        endedJobEvents({ status, queue_position: null, ...(cached && { x_cached_nodes: cached }) }),
      );
    },
    list: ({ user }, query) =>
      listJobs(user, query, {
        ...deps,
        facts: async (rows) => rows.map((row) => find(row.id) ?? jobStateOf(row)),
      }),
  };
}

/** The newest job with these labels; certain, because the ledger has all jobs. */
export async function recoverJob(
  { list }: Pick<JobApi, 'list'>,
  caller: Caller,
  metadata: JobListQuery['metadata'],
): ReturnType<JobApi['recover']> {
  const page = await list(caller, { limit: 1, ...(metadata && { metadata }) });
  if (!page.ok) return page;
  return ok({ job: page.value.jobs[0] ?? null, isCertain: true, isListed: true });
}

export type JobListOptions = Pick<JobReaderOptions, 'ledger' | 'clock'> & {
  /** The current state of these jobs. */
  readonly facts: (rows: readonly JobRow[]) => Promise<readonly JobState[]>;
};

/** One page of a user's jobs, newest first. */
export async function listJobs(
  user: string,
  query: JobListQuery,
  { ledger, clock, facts }: JobListOptions,
): ReturnType<JobApi['list']> {
  const limit = query.limit ?? DEFAULT_PAGE;
  let before = query.cursor;
  if (before !== undefined && (await ledger.jobs.get(before))?.user !== user) {
    return refuse(400, 'invalid_cursor', 'this cursor is not one of ours');
  }
  const found: JobState[] = [];
  for (;;) {
    const rows = await ledger.jobs.list(user, {
      limit: SCAN_PAGE,
      ...(before !== undefined && { before }),
    });
    for (const job of await facts(rows)) if (matches(job, query, clock.now())) found.push(job);
    before = rows.at(-1)?.id;
    if (rows.length < SCAN_PAGE || found.length > limit) break;
  }
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  const jobs = page.map((job) => showJob(job, clock.now()));
  return ok({ jobs, ...(last && { next_cursor: last.id }) });
}

function matches(job: JobState, { status, metadata }: JobListQuery, nowMs: number): boolean {
  if (status && !status.includes(showJob(job, nowMs).status)) return false;
  return Object.entries(metadata ?? {}).every(([name, value]) => job.metadata?.[name] === value);
}

/** Another user's job is reported as missing. */
export function notFound<T>(): Result<T> {
  return refuse(404, 'not_found', 'no such job');
}
