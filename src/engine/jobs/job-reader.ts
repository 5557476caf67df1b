import type { Clock } from '../../lib/clock.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import {
  type Caller,
  type JobPage,
  type JobReads,
  type JobListQuery,
  ok,
  refuse,
  type Result,
} from '../../protocol/job-api.ts';
import { parseJson } from '../../protocol/json.ts';
import { type Graph, IS_TERMINAL } from '../../protocol/v2.ts';
import { endedJobEvents } from '../../job-events/job-feed.ts';
import { type JobState, showJob } from './live-job.ts';
import type { LiveJobs } from './run-store.ts';

const DEFAULT_PAGE = 50;
const SCAN_PAGE = 100;

export type JobReaderOptions = {
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly live: LiveJobs;
};

/** The calls of the port that read jobs. */
export function createJobReader(options: JobReaderOptions): JobReads {
  const { clock, live } = options;
  const list: JobReads['list'] = ({ user }, query) => listJobs(user, query, options);
  return {
    list,
    async get(caller, jobId) {
      const job = await stateOf(caller, jobId, options);
      return job ? ok(showJob(job, clock.now())) : notFound();
    },
    async workflow(caller, jobId) {
      const row = await rowOf(caller, jobId, options);
      if (!row) return notFound();
      return ok({ workflow: parseJson(row.workflowJson) as Graph, format: 'api' });
    },
    async events(caller, jobId, signal) {
      const own = live.ownEvents(caller, jobId, signal);
      if (own) return ok(own);
      const job = await stateOf(caller, jobId, options);
      if (!job) return notFound();
      if (live.subscribe && !IS_TERMINAL[job.status])
        return ok(await live.subscribe(jobId, signal));
      const { status, x_cached_nodes: cached } = showJob(job, clock.now());
      const more = cached && { x_cached_nodes: cached };
      return ok(endedJobEvents({ status, queue_position: null, ...more }));
    },
    /**
     * Finds the newest job with these labels. The result is certain, since the ledger has all jobs.
     */
    async search(caller, { metadata }) {
      const page = await list(caller, { limit: 1, ...(metadata && { metadata }) });
      if (!page.ok) return page;
      const [job] = page.value.jobs;
      return ok(job ? { kind: 'found', job } : { kind: 'none' });
    },
  };
}

async function rowOf(
  { user }: Caller,
  id: string,
  { ledger }: JobReaderOptions,
): Promise<JobRow | undefined> {
  const row = await ledger.jobs.get(id);
  return row?.user === user ? row : undefined;
}

async function stateOf(
  caller: Caller,
  id: string,
  options: JobReaderOptions,
): Promise<JobState | undefined> {
  const { live } = options;
  const job = live.find?.(id);
  if (job) return job.user === caller.user ? job : undefined;
  const row = await rowOf(caller, id, options);
  return row && (await live.statesOf([row]))[0];
}

/** Returns one page of a user's jobs, newest first. */
async function listJobs(
  user: string,
  query: JobListQuery,
  { ledger, clock, live }: JobReaderOptions,
): Promise<Result<JobPage>> {
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
    for (const job of await live.statesOf(rows))
      if (matches(job, query, clock.now())) found.push(job);
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

/** Reports another user's job as missing. */
function notFound<T>(): Result<T> {
  return refuse(404, 'not_found', 'no such job');
}
