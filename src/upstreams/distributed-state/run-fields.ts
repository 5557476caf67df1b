import type { JobRow } from '../../ledger/ledger.ts';
import { type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import type { LiveJob } from '../jobs/live-job.ts';

/** The changes that the end of a job makes to its row. */
export type EndPatch = Partial<Omit<JobRow, 'id' | 'user'>>;

/** The state of an unfinished job, which its row does not have. */
export type RunState = Partial<
  Pick<LiveJob, 'status' | 'startedAtMs' | 'progress' | 'outputs' | 'ui' | 'cachedNodes'>
> & {
  readonly end: EndPatch | undefined;
};

/** A state from the fields of its hash. */
export function stateOf(fields: { readonly [name: string]: string }): RunState | undefined {
  if (fields['fence'] === undefined) return undefined;
  const { status, startedAtMs, progress, outputs, ui, cached, cancel, end } = fields;
  const isStopping = cancel !== undefined && status === 'running';
  return {
    end: end === undefined ? undefined : (JSON.parse(end) as EndPatch),
    status: isStopping ? 'canceling' : ((status ?? 'queued') as JobStatus),
    startedAtMs: startedAtMs === undefined ? null : Number(startedAtMs),
    ...(progress !== undefined && { progress: read(progress) }),
    ...(outputs !== undefined && { outputs: read(outputs) }),
    ...(ui !== undefined && { ui: read(ui) }),
    ...(cached !== undefined && { cachedNodes: read(cached) }),
  } as RunState;
}

/** The hash fields of a job that its events change. */
export function fieldsOf(
  job: Pick<LiveJob, 'status' | 'progress' | 'outputs' | 'ui' | 'cachedNodes'>,
  changed: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  const write = (value: unknown): string => stringifyJson(value as Json);
  return {
    ...(changed.has('status') && { status: job.status, cached: write(job.cachedNodes) }),
    ...(changed.has('progress') && { progress: write(job.progress) }),
    ...(changed.has('output') && { outputs: write(job.outputs) }),
    ...(changed.has('x_node') && { ui: write(job.ui) }),
  };
}

function read(text: string): unknown {
  return parseJson(text);
}
