import type { JobRow } from '../../ledger/ledger.ts';
import type { FilesOnDisk } from '../../lib/durability.ts';
import { runInSteps } from '../../lib/event-loop.ts';
import {
  type LazyJson,
  createLazyJson,
  readValue,
  rememberJson,
  unload,
} from '../../lib/lazy-json.ts';
import { StopRequest } from '../stop-request.ts';
import type { SubmitRequest } from '../../protocol/job-api.ts';
import { isJsonObject, type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import { stringifySteps } from '../../protocol/json-steps.ts';
import type { Graph, Job, JobError, JobStatus, NodeUi, Progress } from '../../protocol/v2.ts';
import { JobFeed } from '../job-feed.ts';
import { isoTime, jobLinks, showOutput } from '../job-links.ts';
import type { StoredOutput } from './worker-protocol.ts';

type Provenance = NonNullable<SubmitRequest['provenance']>;

/** The reason to stop a job before its end. */
export type StopReason = 'canceled' | 'timeout' | 'shutdown';

/** The state of a job, running or finished. */
export type JobState = {
  readonly id: string;
  readonly user: string;
  readonly createdAtMs: number;
  readonly metadata: { readonly [name: string]: string } | null;
  status: JobStatus;
  startedAtMs: number | null;
  completedAtMs: number | null;
  expiresAtMs: number;
  outputs: StoredOutput[];
  error: JobError | null;
  progress: Progress | null;
  cachedNodes: readonly string[] | null;
  ui: { [nodeId: string]: NodeUi };
};

/** An unfinished job. Only its engine changes it. */
export type LiveJob = JobState & {
  readonly order: number;
  /** Text alone while the job waits. */
  readonly workflow: LazyJson<Graph>;
  /** Output nodes to execute. */
  readonly targets: readonly string[];
  /** The same. */
  readonly provenance: LazyJson<Provenance> | null;
  /** Ids of the assets its workflow reads. */
  readonly reads: ReadonlySet<string>;
  /** Of the call that submitted it, where traces are made. */
  readonly traceparent?: string | undefined;
  readonly feed: JobFeed;
  readonly stop: StopRequest<StopReason>;
  /** Runs that a thread began: a job that crashes the process is not retried for ever. */
  attempts: number;
  /** This run has begun, and that is on record. */
  hasBegun: boolean;
  position: number | null;
  /** Where several processes run jobs: the number of its run, which all writes carry. */
  readonly fence?: number;
  /** Of the files it made; absent before its first run. */
  filesOnDisk?: FilesOnDisk;
};

type JobExtras = Pick<JobState, 'progress' | 'cachedNodes' | 'ui'> &
  Pick<LiveJob, 'targets' | 'attempts' | 'traceparent'> & { readonly reads: readonly string[] };

type NewJob = Pick<
  LiveJob,
  | 'id'
  | 'user'
  | 'order'
  | 'createdAtMs'
  | 'expiresAtMs'
  | 'workflow'
  | 'targets'
  | 'provenance'
  | 'metadata'
  | 'reads'
  | 'traceparent'
>;

/** A job that has just been accepted, or has to be run again from the start. */
export function newJob(job: NewJob & { readonly attempts?: number }): LiveJob {
  // The job last: on Node 20 a member that is added to a copy takes a microsecond.
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
    stop: new StopRequest(),
    position: null,
    ...job,
  };
}

/** Writes the long texts of a job in steps; `toRow` finds them written. */
export async function writeTexts({ workflow, provenance }: LiveJob): Promise<void> {
  await writeJson(workflow);
  if (provenance) await writeJson(provenance);
}

/** Everything of a job that is stored. */
export async function toRow(job: LiveJob): Promise<JobRow> {
  return {
    id: job.id,
    user: job.user,
    order: job.order,
    createdAtMs: job.createdAtMs,
    workflowJson: await writeJson(job.workflow),
    provenanceJson: job.provenance && (await writeJson(job.provenance)),
    metadataJson: job.metadata && stringifyJson(job.metadata),
    ...toPatch(job),
  };
}

/** The JSON of a value, which is written once. */
export async function writeJson(lazy: LazyJson<unknown>): Promise<string> {
  if (lazy.json !== undefined) return lazy.json;
  const value = readValue(lazy);
  const json = await runInSteps(stringifySteps(value as Json));
  rememberJson(lazy, value, json);
  return json;
}

/** Longer ones take more than a turn of the event loop to parse again. */
const MAX_UNLOADED_CHARS = 512 * 1024;

/** The job has to wait: only the texts that `toRow` made stay in memory. */
export function unloadJob({ workflow, provenance }: LiveJob): void {
  for (const lazy of [workflow, provenance]) {
    if (lazy?.json !== undefined && lazy.json.length <= MAX_UNLOADED_CHARS) unload(lazy);
  }
}

type Patch = Omit<
  JobRow,
  'id' | 'user' | 'order' | 'createdAtMs' | 'workflowJson' | 'provenanceJson' | 'metadataJson'
>;

/** The part of a stored job that changes while it lives. */
export function toPatch(job: LiveJob): Patch {
  return {
    outputsJson: stringifyJson(job.outputs),
    extrasJson: stringifyJson(extrasFor(job)),
    ...patchOf(job),
  };
}

/**
 * The same for a finished job, in steps: the results of thousands of nodes are too long to write in
 * one turn of the event loop.
 */
export async function toEndPatch(job: LiveJob): Promise<Patch> {
  return {
    outputsJson: await runInSteps(stringifySteps(job.outputs)),
    extrasJson: await runInSteps(stringifySteps(extrasFor(job))),
    ...patchOf(job),
  };
}

function patchOf(job: LiveJob): Omit<Patch, 'outputsJson' | 'extrasJson'> {
  return {
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

/** An unfinished job of an earlier process, to be run from the start. */
export function jobFromRow(row: JobRow): LiveJob {
  const extras = extrasOf(row);
  return newJob({
    id: row.id,
    user: row.user,
    order: row.order,
    createdAtMs: row.createdAtMs,
    expiresAtMs: row.expiresAtMs,
    workflow: createLazyJson<Graph>(undefined, row.workflowJson),
    targets: extras.targets,
    provenance:
      row.provenanceJson === null
        ? null
        : createLazyJson<Provenance>(undefined, row.provenanceJson),
    metadata: metadataOf(row),
    reads: new Set(extras.reads),
    attempts: extras.attempts,
    traceparent: extras.traceparent,
  });
}

/** The state of a stored job. */
export function jobStateOf(row: JobRow): JobState {
  const { progress, cachedNodes, ui } = extrasOf(row);
  return {
    id: row.id,
    user: row.user,
    createdAtMs: row.createdAtMs,
    metadata: metadataOf(row),
    status: row.status as JobStatus,
    startedAtMs: row.startedAtMs,
    completedAtMs: row.completedAtMs,
    expiresAtMs: row.expiresAtMs,
    outputs: parseJson(row.outputsJson) as unknown as StoredOutput[],
    error: row.errorJson === null ? null : (parseJson(row.errorJson) as unknown as JobError),
    progress,
    cachedNodes,
    ui,
  };
}

/** An unfinished job is kept until the retention after its end, however long it waits and runs. */
function shownExpiryMs(
  { createdAtMs, completedAtMs, expiresAtMs }: JobState,
  nowMs: number,
): number {
  if (completedAtMs !== null || expiresAtMs > nowMs) return expiresAtMs;
  return nowMs + expiresAtMs - createdAtMs;
}

/** A job as v2 shows it. After its retention a job is `expired` and shows no results. */
export function showJob(job: JobState & { readonly position?: number | null }, nowMs: number): Job {
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

function metricsOf({
  createdAtMs,
  startedAtMs,
  completedAtMs,
}: JobState): NonNullable<Job['metrics']> {
  const ended = startedAtMs !== null && completedAtMs !== null;
  return {
    queue_ms: startedAtMs === null ? null : startedAtMs - createdAtMs,
    execution_ms: ended ? completedAtMs - startedAtMs : null,
  };
}

function extrasOf(row: JobRow): JobExtras {
  const extras = row.extrasJson === null ? null : parseJson(row.extrasJson);
  if (!isJsonObject(extras ?? undefined))
    throw new Error(`job ${row.id} is stored without its extras`);
  return extras as unknown as JobExtras;
}

function metadataOf(row: JobRow): JobState['metadata'] {
  return row.metadataJson === null ? null : (parseJson(row.metadataJson) as JobState['metadata']);
}
