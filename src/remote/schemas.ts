import { z } from 'zod';
import { type Json, LosslessNumber, isJsonObject, parseJsonOrUndefined } from '../protocol/json.ts';
import {
  type Asset,
  type Graph,
  JOB_STATUSES,
  type Job,
  type JobError,
  type NodeUi,
  OUTPUT_TYPES,
  type Output,
  type Progress,
  outputTypeOf,
} from '../protocol/v2.ts';
import type { JobWorkflow, JobEventData } from '../protocol/job-api.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { engineFileOf } from '../protocol/engine-file.ts';
import { withoutFolders, withoutFoldersIn } from './files/upload-paths.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** The latest time of `Date`, less a day for an expiry after it. */
const MAX_TIME_MS = 8_640_000_000_000_000 - DAY_MS;
/** Used when the service states no expiry, so that such a link is never stored. */
const EPOCH = new Date(0).toISOString();

const exactOrNot = (value: unknown): unknown =>
  value instanceof LosslessNumber ? Number(value.toString()) : value;
const share = z
  .preprocess(exactOrNot, z.number())
  .transform((value) => Math.min(1, Math.max(0, value)));
const count = z.preprocess(exactOrNot, z.number().min(0)).catch(0);
const maybeNumber = z.preprocess(exactOrNot, z.number().nullable()).catch(null);
const optionalNumber = z.preprocess(exactOrNot, z.number().nullish()).catch(null);
const anyText = z.string().catch('');
const optionalText = z.string().nullish().catch(null);
/**
 * Ids are used as keys here, where a NUL would change their meaning, and in addresses, which cannot
 * have half of a surrogate pair. Any other text is accepted.
 */
const id = z.string().regex(/^[^\0\p{Surrogate}]+$/u);
const mediaType = z
  .string()
  .refine((text) => !hasControlCharacter(text))
  .catch('application/octet-stream');
const time = z.string().refine((text) => Date.parse(text) < MAX_TIME_MS);
const maybeTime = time.nullable().catch(null);
const knownTime = orAbsent(time);
/** A service may have states of its own: a job in such a state has not ended. */
const status = z.string().pipe(z.enum(JOB_STATUSES).catch('running'));
const flag = orAbsent(z.boolean());
const word = orAbsent(z.string());
const listsByName = z.custom<NodeUi>(isNodeUi);
const cachedNodes = orAbsent(z.array(z.string()));

/** A member that is left out when it has an unexpected value. */
function orAbsent<T>(schema: z.ZodType<T>): z.ZodType<T | undefined> {
  return schema.optional().catch(undefined);
}

/** The members of the contract and those of another Holdover. Others are dropped. */
function members<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object(shape).transform((read) => {
    const known = Object.entries(read).filter(([, value]) => value !== undefined);
    return Object.fromEntries(known) as typeof read;
  });
}

/** True for the output of one node. */
function isNodeUi(value: unknown): value is NodeUi {
  return isJsonObject(value as Json) && Object.values(value as NodeUi).every(Array.isArray);
}

const PROGRESS = members({
  value: share,
  nodes_done: count,
  nodes_total: count,
  current_node: optionalText,
  current_node_class: optionalText,
  step: optionalNumber,
  steps: optionalNumber,
  message: optionalText,
  x_polled: flag,
});

const OUTPUT = members({
  // Empty when the worker named no node.
  node_id: anyText,
  name: anyText,
  type: orAbsent(z.enum(OUTPUT_TYPES)),
  content_type: mediaType,
  // One server states 0 for every file.
  size_bytes: count,
  id,
  hash: id.nullable().catch(null),
  url: anyText,
  url_expires_at: time.catch(EPOCH),
  job_id: optionalText,
  x_subfolder: word,
  x_temp: flag,
  x_websocket: flag,
  x_with_step: flag,
}).transform(({ type, ...read }) => ({
  ...folderFields(read.id),
  ...read,
  type: type ?? outputTypeOf(read.content_type),
}));

const JOB_ERROR = members({
  code: z.string().catch('job_failed'),
  message: z.string().catch('The job failed.'),
  node_id: optionalText,
  class_type: optionalText,
  traceback: optionalText,
  x_exception_type: word,
  x_current_inputs: orAbsent(listsByName),
}).transform((error) => withoutFoldersIn(error as unknown as Json) as unknown as JobError);

const ASSET = members({
  id,
  hash: id.nullable().catch(null),
  size_bytes: count,
  content_type: mediaType,
  created_at: time.catch(() => new Date().toISOString()),
  url: anyText,
  url_expires_at: time.catch(EPOCH),
  file_path: word,
  created_new: flag,
  expires_at: time.nullish().catch(null),
  job_id: optionalText,
  tags: orAbsent(z.array(z.string())),
});

const LINKS = z.object({ self: anyText, events: anyText, cancel: anyText });

const JOB = members({
  id,
  status,
  created_at: knownTime,
  // The time of creation in a list of jobs.
  create_time: knownTime,
  started_at: maybeTime,
  completed_at: maybeTime,
  expires_at: knownTime,
  queue_position: maybeNumber,
  progress: PROGRESS.nullable().catch(null),
  outputs: z
    .array(z.unknown())
    .catch([])
    .transform((items) => items.flatMap((item) => readOutput(item) ?? [])),
  error: JOB_ERROR.nullable().catch(null),
  urls: LINKS.catch({ self: '', events: '', cancel: '' }),
  metrics: orAbsent(z.record(z.string(), maybeNumber)),
  // A map or, at one server, a text that Holdover fills with the map.
  metadata: orAbsent(
    z.preprocess(
      (labels) => (typeof labels === 'string' ? parseJsonOrUndefined(labels) : labels),
      z.record(z.string(), z.string()),
    ),
  ),
  x_cached_nodes: cachedNodes,
  x_ui: orAbsent(
    z.custom(
      (value) => isJsonObject(value as Json) && Object.values(value as object).every(isNodeUi),
    ),
  ),
  x_workflow: orAbsent(z.custom((value) => isJsonObject(value as Json))),
}).transform(({ created_at, create_time, expires_at, ...job }) => {
  const createdAt = created_at ?? create_time ?? new Date().toISOString();
  const expiresAt = expires_at ?? new Date(Date.parse(createdAt) + DAY_MS).toISOString();
  return { ...job, created_at: createdAt, expires_at: expiresAt };
});

/** A reader of JSON; it returns `undefined` for what does not match. */
type Reader<T> = (json: unknown) => T | undefined;

function readerOf<T>(schema: z.ZodType): Reader<T> {
  return (json) => schema.safeParse(json).data as T | undefined;
}

/** Reads a job as any of the servers writes it. */
export const readJob: Reader<Job> = readerOf(JOB);
export const readProgress: Reader<Progress> = readerOf(PROGRESS);
export const readOutput: Reader<Output> = readerOf(OUTPUT);
export const readAsset: Reader<Asset> = readerOf(ASSET);

/**
 * Returns the folder of an output. v1 has folders, v2 does not; the ids of one server contain more
 * than its members.
 */
function folderFields(outputId: string): Pick<Output, 'x_subfolder' | 'x_temp'> {
  const file = engineFileOf(outputId);
  if (!file) return {};
  const { subfolder, type } = file;
  return {
    ...(subfolder !== '' && { x_subfolder: withoutFolders(subfolder) }),
    ...(type === 'temp' && { x_temp: true }),
  };
}

const STATUS = members({ status, queue_position: optionalNumber, x_cached_nodes: cachedNodes });

export const readStatus: Reader<JobEventData['status']> = readerOf(STATUS);

const yes = orAbsent(z.literal(true));

const PREVIEW = members({
  node_id: anyText,
  content_type: z.string().catch('image/jpeg'),
  data_base64: z.string(),
  x_with_step: yes,
  x_own: yes,
  x_sampler: yes,
})
  .transform(({ data_base64, ...read }) => ({ ...read, bytes: Buffer.from(data_base64, 'base64') }))
  .refine(({ bytes }) => bytes.length > 0);

export const readPreview: Reader<JobEventData['preview']> = readerOf(PREVIEW);

const NODE_EVENT = members({
  node_id: z.string(),
  phase: z.enum(['started', 'finished']),
  ui: orAbsent(listsByName.nullable()),
});

export const readNodeEvent: Reader<JobEventData['x_node']> = readerOf(NODE_EVENT);

const NODE_TEXT = z.object({ node_id: z.string(), text: z.string() });

export const readNodeText: Reader<JobEventData['x_text']> = readerOf(NODE_TEXT);

/** Reads the answer of `GET /jobs/{id}/workflow`. */
export function readWorkflow(json: Json | undefined): JobWorkflow | undefined {
  if (!isJsonObject(json) || !isJsonObject(json['workflow'])) return undefined;
  const format = json['format'] === 'save' ? 'save' : 'api';
  return { workflow: json['workflow'] as Graph, format };
}
