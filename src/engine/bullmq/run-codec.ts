import type { JobRow } from '../../ledger/ledger.ts';
import { type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import type { JobEvent, JobEventData, JobEventOf } from '../../protocol/job-api.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import type { JobState, LiveJob } from '../jobs/live-job.ts';

/** The changes that the end of a job makes to its row in the ledger. */
export type EndPatch = Partial<Omit<JobRow, 'id' | 'user'>>;

/** The state of a run, which the row of the job does not have. `end`: the end that is decided. */
export type RunState = Partial<JobState> & { readonly end: EndPatch | undefined };

const LINE_END = 0x0a;
/** The first byte of a published preview. */
const PREVIEW = 0x70;
/** A position is the fence times this, plus the number of the event. No run has so many events. */
const FENCE_UNIT = 2 ** 32;

/** The names of hash fields begin with this: before the number of an output, or the id of a node with shown results. */
const OUTPUT = 'output:';
const UI = 'ui:';

/** Decodes the state of a run from its hash; `undefined` when there is none. */
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

/** The hash fields that an event changes, with their values. Each output and each shown result has a field. */
export function fieldsOf(
  job: LiveJob,
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

/** Decodes an event, which is stored and published as JSON. */
export function decodeEvent(text: string): JobEvent {
  return parseJson(text) as unknown as JobEvent;
}

/** Encodes a preview: a line of JSON, then the bytes of the picture. Previews are published, but not stored. */
export function encodePreview({ data: { bytes, ...head } }: JobEventOf<'preview'>): Buffer {
  return Buffer.concat([Buffer.from(`${stringifyJson(head)}\n`), bytes]);
}

/** Decodes a published event and its position in the stream; a preview has no position. */
export function decodePublished(message: Buffer): { event: JobEvent; position?: number } {
  const end = message.indexOf(LINE_END);
  const head = message.toString('utf8', 1, end);
  const body = message.subarray(end + 1);
  if (message[0] !== PREVIEW)
    return { event: decodeEvent(body.toString()), position: positionOf(head) };
  const data = parseJson(head) as Omit<JobEventData['preview'], 'bytes'>;
  return { event: { event: 'preview', data: { ...data, bytes: body } } };
}

/** The position of an event from the id `FENCE-N` of its stream entry. `N` has no gaps within a fence. */
export function positionOf(id: string): number {
  const [fence = 0, n = 0] = id.split('-').map(Number);
  return fence * FENCE_UNIT + n;
}

/** The id of the stream entry at a position. */
export function idOf(position: number): string {
  return `${Math.floor(position / FENCE_UNIT)}-${position % FENCE_UNIT}`;
}
