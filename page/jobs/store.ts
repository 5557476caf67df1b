import { batch, computed, effect, signal } from '@preact/signals';
import { Mutex } from 'async-mutex';
import type { JobListAnswer, JobSummary } from '../../src/console/api-types.ts';
import { getJson, postJson } from '../lib/server.ts';
import { route, replaceQuery } from '../lib/route.ts';
import { isStep } from '../lib/socket.ts';
import { announcement, connection, identity, onMessage, tell, tellError } from '../state.ts';
import { STATUS_WORDS } from '../lib/ui.tsx';
import { forgetAllLive, forgetLive } from './live.ts';

/** An empty value takes all jobs. */
type Filter = Readonly<Record<'status' | 'client' | 'api' | 'text', string>>;

const NO_FILTER: Filter = { status: '', client: '', api: '', text: '' };
const PAGE = 100;
const MAX_PAGE = 500;
const QUIET_MS = 400;
/** Longer where many jobs are live: each answer has all of them. */
const QUIET_MS_PER_JOB = 4;
const REFRESH_MS = 15_000;

export const filter = signal<Filter>(readFilter(route.peek().query));
export const jobs = signal<readonly JobSummary[]>([]);
export const counts = signal<JobListAnswer['counts'] | undefined>(undefined);
export const selection = signal<ReadonlySet<string>>(new Set());
/** False until the first answer. */
export const isLoaded = signal(false);
/** Why there was none. */
export const fault = signal<unknown>(undefined);
export const hasMore = signal(false);
/** Clients that were seen in the list; the filter offers them. */
export const clients = signal<ReadonlySet<string>>(new Set());
export const isFiltered = computed(() => Object.keys(filterValues(filter.value)).length > 0);
/** Jobs that run or wait, also beyond the list. */
export const liveCount = computed(() => {
  const { pending = 0, in_progress: running = 0 } = counts.value ?? {};
  return pending + running;
});

/** Of two reads at once the later answer would drop rows of the other, or leave a gap after them. */
const reading = new Mutex();
let cursor: string | null = null;
/** Changes with the filter and the key: an answer to an earlier question is dropped. */
let question = 0;
let isLoadingMore = false;
let isRefreshing = false;
let isRefreshDue = false;

function readFilter(query: URLSearchParams): Filter {
  const { status = '', client = '', api = '', text = '' } = Object.fromEntries(query);
  return {
    status: Object.hasOwn(STATUS_WORDS, status) ? status : '',
    client,
    api: api === 'v1' || api === 'v2' ? api : '',
    text,
  };
}

function filterValues(values: Filter): Partial<Filter> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
}

export function setFilter(change: Partial<Filter>): void {
  filter.value = { ...filter.peek(), ...change };
  replaceQuery(filterValues(filter.peek()));
  restart();
}

export function clearFilter(): void {
  setFilter(NO_FILTER);
}

function restart(): void {
  question++;
  cursor = null;
  isLoadingMore = false;
  batch(() => {
    jobs.value = [];
    selection.value = new Set();
    hasMore.value = false;
    isLoaded.value = false;
    fault.value = undefined;
  });
  void refresh();
}

function pathOf(limit: number, after: string | null): string {
  const { client, ...others } = filterValues(filter.peek());
  const query = new URLSearchParams({ limit: String(limit), ...others });
  if (after !== null) query.set('cursor', after);
  if (client !== undefined) query.set('client_id', client === '(none)' ? '' : client);
  return `holdover/api/job-list?${query}`;
}

/** The newest jobs, in several calls when one cannot answer as many. */
async function readNewest(count: number): Promise<JobListAnswer> {
  let answer = await getJson<JobListAnswer>(pathOf(Math.min(MAX_PAGE, count), null));
  for (let left = count - MAX_PAGE; left > 0 && answer.next_cursor !== null; left -= MAX_PAGE) {
    const path = pathOf(Math.min(MAX_PAGE, left), answer.next_cursor);
    const next = await getJson<JobListAnswer>(path);
    const known = new Set(answer.jobs.map(({ key }) => key));
    const jobsOfBoth = [...answer.jobs, ...next.jobs.filter(({ key }) => !known.has(key))];
    answer = { ...next, jobs: jobsOfBoth };
  }
  return answer;
}

/** Reads the newest jobs again, and keeps the older ones that were read before. */
export async function refresh(): Promise<void> {
  isRefreshDue = true;
  if (isRefreshing) return;
  isRefreshing = true;
  while (isRefreshDue) {
    isRefreshDue = false;
    const asked = question;
    let quietMs = QUIET_MS;
    try {
      await reading.runExclusive(async () => {
        const shown = jobs.peek().filter(({ ended_at_ms: end }) => end === null).length;
        const answer = await readNewest(shown + PAGE);
        if (asked === question) {
          show(answer);
          quietMs += shown * QUIET_MS_PER_JOB;
        } else isRefreshDue = true;
      });
    } catch (error) {
      if (asked === question) fail(error);
    }
    await new Promise((resolve) => setTimeout(resolve, quietMs));
  }
  isRefreshing = false;
}

function show(answer: JobListAnswer): void {
  const earlier = jobs.peek();
  const known = new Map(earlier.map((job) => [job.key, job]));
  const fresh = new Set(answer.jobs.map(({ key }) => key));
  const last = answer.jobs.findLast(({ ended_at_ms: end }) => end !== null)?.ended_at_ms ?? 0;
  // With nothing in common there may be a gap: then reading starts anew from here.
  const isConnected = answer.jobs.some(
    ({ key, ended_at_ms: end }) => end !== null && known.has(key),
  );
  const older = isConnected
    ? earlier.filter(({ key, ended_at_ms: end }) => end !== null && end <= last && !fresh.has(key))
    : [];
  announceEnds(known, answer.jobs);
  batch(() => {
    jobs.value = [...answer.jobs.map((job) => asBefore(job, known.get(job.key))), ...older];
    counts.value = answer.counts;
    if (older.length === 0) cursor = answer.next_cursor;
    hasMore.value = cursor !== null;
    isLoaded.value = true;
    fault.value = undefined;
    rememberClients(answer.jobs);
  });
  if (answer.jobs.length === 0 && cursor !== null) void loadMore();
}

/** A job that has not changed stays the same object: its row is not drawn anew. */
function asBefore(job: JobSummary, before: JobSummary | undefined): JobSummary {
  return before !== undefined && JSON.stringify(before) === JSON.stringify(job) ? before : job;
}

function fail(error: unknown): void {
  fault.value = error;
  if (connection.peek().is === 'open') tellError(error);
}

function announceEnds(
  known: ReadonlyMap<string, JobSummary>,
  current: readonly JobSummary[],
): void {
  const ended = current.filter(
    ({ key, ended_at_ms: end }) => end !== null && known.get(key)?.ended_at_ms === null,
  );
  ended.forEach(({ id }) => forgetLive(id));
  const [first] = ended;
  if (first === undefined) return;
  const one = `${first.name}: ${STATUS_WORDS[first.status].toLowerCase()}.`;
  announcement.value = ended.length === 1 ? one : `${ended.length} jobs have ended.`;
}

function rememberClients(rows: readonly JobSummary[]): void {
  const known = clients.peek();
  const names = rows.map(({ client_id: id }) => id ?? '(none)').filter((name) => !known.has(name));
  if (names.length > 0 && known.size < 200) clients.value = new Set([...known, ...names]);
}

export async function loadMore(): Promise<void> {
  if (isLoadingMore || cursor === null) return;
  isLoadingMore = true;
  const asked = question;
  try {
    await reading.runExclusive(() => readMore(asked));
  } catch (error) {
    if (asked === question) tellError(error);
  } finally {
    if (asked === question) isLoadingMore = false;
  }
  // A filter may have found nothing in the part of history that one call reads.
  if (asked === question && cursor !== null && jobs.peek().length < PAGE / 2) void loadMore();
}

async function readMore(asked: number): Promise<void> {
  if (asked !== question || cursor === null) return;
  const answer = await getJson<JobListAnswer>(pathOf(PAGE * 2, cursor));
  if (asked !== question) return;
  const known = new Set(jobs.peek().map(({ key }) => key));
  cursor = answer.next_cursor;
  batch(() => {
    jobs.value = [...jobs.peek(), ...answer.jobs.filter(({ key }) => !known.has(key))];
    hasMore.value = cursor !== null;
    rememberClients(answer.jobs);
  });
}

export async function cancel(ids: readonly string[]): Promise<void> {
  try {
    await postJson('api/jobs/cancel', { job_ids: ids });
    tell(ids.length === 1 ? 'Cancelled.' : `Cancelled ${ids.length} jobs.`);
  } catch (error) {
    tellError(error);
  }
  selection.value = new Set();
  void refresh();
}

/** Cancels everything that runs or waits, also beyond the list. */
export async function cancelAll(): Promise<void> {
  try {
    await postJson('queue', { clear: true });
    const path = `holdover/api/job-list?status=in_progress&limit=${MAX_PAGE}`;
    const { jobs: running } = await getJson<JobListAnswer>(path);
    const ids = running.map(({ id }) => id);
    if (ids.length > 0) await postJson('api/jobs/cancel', { job_ids: ids });
    tell('Cancelled all jobs.');
  } catch (error) {
    tellError(error);
  }
  void refresh();
}

export function toggleSelected(key: string): void {
  const next = new Set(selection.peek());
  if (!next.delete(key)) next.add(key);
  selection.value = next;
}

onMessage((message) => {
  const { type } = message;
  if (type === 'status' || (type.startsWith('execut') && !isStep(message))) void refresh();
});

effect(() => {
  if (connection.value.is === 'open') void refresh();
});

identity.subscribe((number) => {
  if (number === 0) return;
  counts.value = undefined;
  clients.value = new Set();
  forgetAllLive();
  restart();
});

setInterval(() => {
  if (!document.hidden && connection.peek().is === 'open') void refresh();
}, REFRESH_MS);
