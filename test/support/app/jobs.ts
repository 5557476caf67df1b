import { randomUUID } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { hash } from 'blake3';
import type {
  Caller,
  JobApi,
  JobEvent,
  Result,
  SpooledFile,
  SubmitRequest,
} from '../../../src/protocol/job-api.ts';
import type { Json } from '../../../src/protocol/json.ts';
import type { Graph, Job } from '../../../src/protocol/v2.ts';

export const ANNA: Caller = { user: 'anna' };
export const BEN: Caller = { user: 'ben' };

/** The value of a result that must not be a refusal. */
export function value<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.error)}`);
  return result.value;
}

/** Shorthand for an API-format graph: id → [class, inputs]. */
export function graph(nodes: {
  readonly [id: string]: readonly [string, { readonly [name: string]: Json }];
}): Graph {
  const entries = Object.entries(nodes).map(([id, [class_type, inputs]]) => [
    id,
    { class_type, inputs },
  ]);
  return Object.fromEntries(entries) as Graph;
}

/** Submits and reads every event up to the end. */
export async function runJob(
  api: JobApi,
  workflow: Graph,
  more: Partial<SubmitRequest> & { readonly caller?: Caller } = {},
): Promise<{ job: Job; events: readonly JobEvent[] }> {
  const { caller = ANNA, ...request } = more;
  const { id } = value(await api.submit(caller, { workflow, extraData: {}, ...request }));
  const events = await collect(api, id, caller);
  return { job: value(await api.get(caller, id)), events };
}

/** All events of a job until its stream ends. */
export async function collect(
  api: JobApi,
  id: string,
  caller = ANNA,
): Promise<readonly JobEvent[]> {
  const events: JobEvent[] = [];
  for await (const event of value(await api.events(caller, id, new AbortController().signal)))
    events.push(event);
  return events;
}

/** Reads events until one fits. */
export async function until(
  api: JobApi,
  id: string,
  fits: (event: JobEvent) => boolean,
  caller = ANNA,
): Promise<JobEvent> {
  const stop = new AbortController();
  for await (const event of value(await api.events(caller, id, stop.signal))) {
    if (fits(event)) return event;
  }
  throw new Error('the stream ended before that event');
}

/** True for a reported step of a node: the job is in the middle of it. */
export function isStep(event: JobEvent): boolean {
  return event.event === 'progress' && event.data.step === 1;
}

/** Events as short words, for comparing orders. */
export function words(events: readonly JobEvent[]): readonly string[] {
  return events.filter(isNoAnnouncement).map((event) => {
    if (event.event === 'status') return `status ${event.data.status}`;
    if (event.event === 'progress')
      return `progress ${event.data.nodes_done}/${event.data.nodes_total} ${event.data.current_node ?? '-'} ${event.data.step ?? '-'}`;
    if (event.event === 'x_node') return `${event.data.phase} ${event.data.node_id}`;
    return `${event.event} ${event.data.node_id}`;
  });
}

/** That a job is about to end is told, too, and no news. */
function isNoAnnouncement(event: JobEvent): boolean {
  return event.event !== 'status' || event.data.x_ends !== true;
}

/** A spooled upload with this content. */
export async function spooled(content: string): Promise<SpooledFile> {
  const dir = await mkdtemp(path.join(tmpdir(), 'holdover-spool-'));
  const file = path.join(dir, randomUUID());
  await writeFile(file, content);
  return {
    path: file,
    sizeBytes: Buffer.byteLength(content),
    hash: `blake3:${hash(content).toString('hex')}`,
  };
}

/** The text behind an asset. */
export async function contentText(api: JobApi, id: string, caller = ANNA): Promise<string> {
  const content = value(await api.content(caller, id));
  if (content.kind !== 'bytes') throw new Error('redirected');
  return Buffer.concat(await content.stream.toArray()).toString();
}
