import type { JobRow } from '../../ledger/ledger.ts';
import { type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
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

/** Before the number of an output, and before the id of a node that shows something. */
const OUTPUT = 'output:';
const UI = 'ui:';

/** A state from the fields of its hash. */
export function stateOf(fields: { readonly [name: string]: string }): RunState | undefined {
  if (fields['fence'] === undefined) return undefined;
  const { status, startedAtMs, progress, cached, cancel, end } = fields;
  const isStopping = cancel !== undefined && status === 'running';
  const outputs = valuesOf(fields, OUTPUT).toSorted(([a], [b]) => Number(a) - Number(b));
  const ui = valuesOf(fields, UI);
  return {
    end: end === undefined ? undefined : (JSON.parse(end) as EndPatch),
    status: isStopping ? 'canceling' : ((status ?? 'queued') as JobStatus),
    startedAtMs: startedAtMs === undefined ? null : Number(startedAtMs),
    ...(progress !== undefined && { progress: parseJson(progress) }),
    ...(outputs.length > 0 && { outputs: outputs.map(([, output]) => output) }),
    ...(ui.length > 0 && { ui: Object.fromEntries(ui) }),
    ...(cached !== undefined && { cachedNodes: parseJson(cached) }),
  } as RunState;
}

/** The hash fields that an event changes: outputs and shown results have a field each. */
export function fieldsOf(
  job: Pick<LiveJob, 'status' | 'progress' | 'outputs' | 'ui' | 'cachedNodes'>,
  { event, data }: JobEvent,
): Readonly<Record<string, string>> {
  const write = (value: unknown): string => stringifyJson(value as Json);
  if (event === 'status') return { status: job.status, cached: write(job.cachedNodes) };
  if (event === 'progress') return { progress: write(job.progress) };
  if (event === 'output') {
    return { [`${OUTPUT}${job.outputs.length - 1}`]: write(job.outputs.at(-1)) };
  }
  if (event !== 'x_node' || !data.ui) return {};
  return { [`${UI}${data.node_id}`]: write(data.ui) };
}

function valuesOf(fields: { readonly [name: string]: string }, prefix: string): [string, Json][] {
  const named = Object.entries(fields).filter(([name]) => name.startsWith(prefix));
  return named.map(([name, text]) => [name.slice(prefix.length), parseJson(text)]);
}
