import type { JobRow } from '../../ledger/ledger.ts';
import { isoTime } from '../../lib/clock.ts';
import type { FilesOnDisk } from '../../lib/durability.ts';
import { runInSteps } from '../../lib/event-loop.ts';
import {
  type LazyJson,
  createLazyJson,
  readValue,
  rememberJson,
  unload,
} from '../../lib/lazy-json.ts';
import type { SubmitRequest } from '../../protocol/job-api.ts';
import { isJsonObject, type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import { stringifySteps } from '../../protocol/json-steps.ts';
import type { Graph, Job, JobError, JobStatus, NodeUi, Progress } from '../../protocol/v2.ts';
import { JobFeed } from '../../job-events/job-feed.ts';
import { jobLinks, showOutput } from '../job-links.ts';
import type { StoredOutput } from './worker-protocol.ts';

type Provenance = NonNullable<SubmitRequest['provenance']>;

/** The reason to stop a job before its end. */
export type StopReason = 'canceled' | 'timeout' | 'shutdown';

/** The members of a job that its runs change. */
type RunResult = {
  status: JobStatus;
  startedAtMs: number | null;
  completedAtMs: number | null;
  outputs: StoredOutput[];
  error: JobError | null;
  progress: Progress | null;
  cachedNodes: readonly string[] | null;
  ui: { [nodeId: string]: NodeUi };
  /** The place in the queue; absent or null for a job that does not wait. */
  position?: number | null;
};

/** The state of a job, running or finished. */
export type JobState = RunResult & {
  readonly id: string;
  readonly user: string;
  readonly createdAtMs: number;
  readonly metadata: { readonly [name: string]: string } | null;
  expiresAtMs: number;
};

/** An unfinished job. Only its engine changes it. */
export type LiveJob = JobState & {
  readonly order: number;
  /** Only text while the job waits. */
  readonly workflow: LazyJson<Graph>;
  /** The output nodes to execute. */
  readonly targets: readonly string[];
  /** Only text while the job waits. */
  readonly provenance: LazyJson<Provenance> | null;
  /** The ids of the assets that its workflow reads. */
  readonly reads: ReadonlySet<string>;
  /** The trace context of the call that submitted the job, where traces are made. */
  readonly traceparent?: string | undefined;
  readonly feed: JobFeed;
  /** Its reason is a `StopReason`. The signal takes memory only once it is read. */
  readonly stop: AbortController;
  /**
   * The number of runs that a thread has begun. A job that crashes the process is not retried
   * without limit.
   */
  attempts: number;
  /** True when this run has begun and that is recorded. */
  hasBegun: boolean;
  /** Where several processes run jobs: the number of the run, which all its writes carry. */
  readonly fence?: number;
  /** The files that the job made; absent before its first run. */
  filesOnDisk?: FilesOnDisk;
};

type JobExtras = Pick<JobState, 'progress' | 'cachedNodes' | 'ui'> &
  Pick<LiveJob, 'targets' | 'attempts' | 'traceparent'> & { readonly reads: readonly string[] };

/** The state of a job that no thread has run. */
export function unstarted(): RunResult & Pick<LiveJob, 'attempts' | 'hasBegun' | 'feed' | 'stop'> {
  return {
    attempts: 0,
    hasBegun: false,
    status: 'queued',
    startedAtMs: null,
    completedAtMs: null,
    outputs: [],
    error: null,
    progress: null,
    cachedNodes: null,
    ui: {},
    feed: new JobFeed({ status: 'queued' }),
    stop: new AbortController(),
    position: null,
  };
}

/** Returns everything of a job that is stored. */
export async function toRow(job: LiveJob): Promise<JobRow> {
  return {
    id: job.id,
    user: job.user,
    order: job.order,
    createdAtMs: job.createdAtMs,
    workflowJson: await writeJson(job.workflow),
    provenanceJson: job.provenance && (await writeJson(job.provenance)),
    metadataJson: job.metadata && stringifyJson(job.metadata),
    ...(await toPatch(job)),
  };
}

/** Returns the JSON of a value, which is written once. */
export async function writeJson(lazy: LazyJson<unknown>): Promise<string> {
  if (lazy.json !== undefined) return lazy.json;
  const value = readValue(lazy);
  const json = await runInSteps(stringifySteps(value as Json));
  rememberJson(lazy, value, json);
  return json;
}

/** To parse longer texts again takes more than a turn of the event loop. */
const MAX_UNLOADED_CHARS = 512 * 1024;

/** Keeps only the texts that `toRow` made in memory, since the job has to wait. */
export function unloadJob({ workflow, provenance }: LiveJob): void {
  for (const lazy of [workflow, provenance]) {
    if (lazy?.json !== undefined && lazy.json.length <= MAX_UNLOADED_CHARS) unload(lazy);
  }
}

type Patch = Omit<
  JobRow,
  'id' | 'user' | 'order' | 'createdAtMs' | 'workflowJson' | 'provenanceJson' | 'metadataJson'
>;

/**
 * Returns the part of a stored job that changes while the job lives. It is written in steps: the
 * results of thousands of nodes are too long to write in one turn of the event loop.
 */
export async function toPatch(job: LiveJob): Promise<Patch> {
  return {
    outputsJson: await runInSteps(stringifySteps(job.outputs)),
    extrasJson: await runInSteps(stringifySteps(extrasFor(job))),
    status: job.status,
    startedAtMs: job.startedAtMs,
    completedAtMs: job.completedAtMs,
    expiresAtMs: job.expiresAtMs,
    errorJson: job.error && stringifyJson(job.error),
  };
}

function extrasFor(job: LiveJob): Json {
  const { progress, cachedNodes, ui, targets, attempts, reads, traceparent } = job;
  const extras = { progress, cachedNodes, ui, targets, attempts, reads: [...reads] };
  return traceparent === undefined ? extras : { ...extras, traceparent };
}

/** Returns an unfinished job of an earlier process, to be run from the start. */
export function jobFromRow(row: JobRow): LiveJob {
  const { targets, reads, attempts, traceparent } = extrasOf(row);
  const { order, workflowJson, provenanceJson } = row;
  return {
    ...jobStateOf(row),
    ...unstarted(),
    order,
    workflow: createLazyJson<Graph>(undefined, workflowJson),
    targets,
    provenance:
      provenanceJson === null ? null : createLazyJson<Provenance>(undefined, provenanceJson),
    reads: new Set(reads),
    attempts,
    traceparent,
  };
}

/** Returns the state of a stored job. */
export function jobStateOf(row: JobRow): JobState {
  const { progress, cachedNodes, ui } = extrasOf(row);
  return {
    id: row.id,
    user: row.user,
    createdAtMs: row.createdAtMs,
    metadata: parseJson(row.metadataJson ?? 'null') as JobState['metadata'],
    status: row.status as JobStatus,
    startedAtMs: row.startedAtMs,
    completedAtMs: row.completedAtMs,
    expiresAtMs: row.expiresAtMs,
    outputs: parseJson(row.outputsJson) as unknown as StoredOutput[],
    error: parseJson(row.errorJson ?? 'null') as JobError | null,
    progress,
    cachedNodes,
    ui,
  };
}

/**
 * Returns the expiry to show. An unfinished job is kept until the retention time after its end,
 * however long it waits and runs.
 */
function shownExpiryMs(job: JobState, nowMs: number): number {
  const { createdAtMs, completedAtMs, expiresAtMs } = job;
  if (completedAtMs !== null || expiresAtMs > nowMs) return expiresAtMs;
  return nowMs + expiresAtMs - createdAtMs;
}

/** Returns a job as v2 shows it. After its retention a job is `expired` and shows no results. */
export function showJob(job: JobState, nowMs: number): Job {
  const expired = job.completedAtMs !== null && job.expiresAtMs <= nowMs;
  return {
    id: job.id,
    status: expired ? 'expired' : job.status,
    created_at: isoTime(job.createdAtMs),
    started_at: job.startedAtMs === null ? null : isoTime(job.startedAtMs),
    completed_at: job.completedAtMs === null ? null : isoTime(job.completedAtMs),
    expires_at: isoTime(shownExpiryMs(job, nowMs)),
    queue_position: job.position ?? null,
    progress: job.progress,
    outputs: expired ? [] : job.outputs.map((output) => showOutput(output, job.id, nowMs)),
    error: job.error,
    metrics: metricsOf(job),
    urls: jobLinks(job.id),
    ...(job.metadata && { metadata: job.metadata }),
    ...(job.cachedNodes && { x_cached_nodes: job.cachedNodes }),
    ...(!expired && { x_ui: { ...job.ui } }),
  };
}

function metricsOf(job: JobState): NonNullable<Job['metrics']> {
  const { createdAtMs, startedAtMs, completedAtMs } = job;
  const ended = startedAtMs !== null && completedAtMs !== null;
  return {
    queue_ms: startedAtMs === null ? null : startedAtMs - createdAtMs,
    execution_ms: ended ? completedAtMs - startedAtMs : null,
  };
}

function extrasOf(row: JobRow): JobExtras {
  const extras = parseJson(row.extrasJson ?? 'null');
  if (!isJsonObject(extras)) throw new Error(`job ${row.id} is stored without its extras`);
  return extras as unknown as JobExtras;
}
