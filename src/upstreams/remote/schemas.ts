import { z } from 'zod';
import { type Json, type JsonObject, LosslessNumber, isJsonObject } from '../../protocol/json.ts';
import {
  type Asset,
  type Graph,
  JOB_STATUSES,
  type Job,
  type JobError,
  OUTPUT_TYPES,
  type Output,
  type OutputType,
  type Progress,
} from '../../protocol/v2.ts';
import { hasControlCharacter } from '../../protocol/control-characters.ts';
import { engineFileOf } from '../../protocol/engine-file.ts';
import { withoutFoldersIn } from '../remote-files/upload-paths.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Used when the service states no expiry: such a link is never stored. */
const EPOCH = new Date(0).toISOString();

const number = z.preprocess(
  (value) => (value instanceof LosslessNumber ? Number(value.toString()) : value),
  z.number(),
);
const count = number.pipe(z.number().nonnegative()).catch(0);
/** Used as a key here, where a NUL would change its meaning; otherwise any text of the service. */
const id = z
  .string()
  .min(1)
  .refine((text) => !text.includes('\0'));
const mediaType = z
  .string()
  .refine((text) => !hasControlCharacter(text))
  .catch('application/octet-stream');
const maybeHash = id.nullable().catch(null);
const maybeText = z.string().nullable().catch(null);
const maybeNumber = number.nullable().catch(null);
const time = z.string().refine((text) => !Number.isNaN(Date.parse(text)));
const maybeTime = time.nullable().catch(null);
const texts = z.array(z.string());

/** States a surface may use inside; what is not final is running. */
const status = z.enum(JOB_STATUSES).or(z.string().transform(() => 'running' as const));

const progress = z.looseObject({
  value: number.transform((value) => Math.min(1, Math.max(0, value))),
  nodes_done: count,
  nodes_total: count,
  current_node: maybeText.optional(),
  current_node_class: maybeText.optional(),
  step: maybeNumber.optional(),
  steps: maybeNumber.optional(),
  message: maybeText.optional(),
});

const output = z.looseObject({
  // Empty when the worker named none.
  node_id: z.string().catch(''),
  name: z.string().catch(''),
  type: z.enum(OUTPUT_TYPES).optional().catch(undefined),
  content_type: mediaType,
  // One server states 0 for every file.
  size_bytes: count,
  id,
  hash: maybeHash,
  url: z.string().catch(''),
  url_expires_at: time.catch(EPOCH),
  job_id: maybeText.optional(),
});

const jobError = z.looseObject({
  code: z.string().catch('job_failed'),
  message: z.string().catch('The job failed.'),
  node_id: maybeText.optional(),
  class_type: maybeText.optional(),
  traceback: maybeText.optional(),
});

const urls = z.object({
  self: z.string().catch(''),
  events: z.string().catch(''),
  cancel: z.string().catch(''),
});

const job = z.looseObject({
  id,
  status,
  created_at: time.optional().catch(undefined),
  create_time: time.optional().catch(undefined),
  started_at: maybeTime,
  completed_at: maybeTime,
  expires_at: time.optional().catch(undefined),
  queue_position: maybeNumber,
  progress: z.unknown().optional(),
  outputs: z.array(z.unknown()).catch([]),
  error: jobError.nullable().catch(null),
  metrics: z.record(z.string(), maybeNumber).optional().catch(undefined),
  urls: urls.catch({ self: '', events: '', cancel: '' }),
  metadata: z.unknown().optional(),
});

const asset = z.looseObject({
  id,
  hash: maybeHash,
  size_bytes: count,
  content_type: mediaType,
  created_at: time.catch(() => new Date().toISOString()),
  url: z.string().catch(''),
  url_expires_at: time.catch(EPOCH),
  file_path: z.string().optional().catch(undefined),
  created_new: z.boolean().optional().catch(undefined),
  expires_at: maybeTime.optional(),
  job_id: maybeText.optional(),
  tags: texts.optional().catch(undefined),
});

const statusEvent = z.looseObject({
  status,
  queue_position: maybeNumber.optional(),
  x_cached_nodes: texts.optional().catch(undefined),
});

const labels = z.record(z.string(), z.string());

/** A job as any of the servers writes it; nothing when it is none. */
export function readJob(json: unknown): Job | undefined {
  const parsed = job.safeParse(json);
  if (!parsed.success) return undefined;
  const fields = parsed.data;
  const createdAt = fields.created_at ?? fields.create_time ?? new Date().toISOString();
  const labelMap = readLabels(fields.metadata as Json | undefined);
  // Built without spreads, which are slow: this runs for every prompt and every poll.
  const result: { [member: string]: unknown } = {
    id: fields.id,
    status: fields.status,
    created_at: createdAt,
    started_at: fields.started_at,
    completed_at: fields.completed_at,
    expires_at: fields.expires_at ?? new Date(Date.parse(createdAt) + DAY_MS).toISOString(),
    queue_position: fields.queue_position,
    progress: readProgress(fields.progress) ?? null,
    outputs: fields.outputs.flatMap((item) => readOutput(item) ?? []),
    error: fields.error === null ? null : readError(fields.error),
    urls: fields.urls,
  };
  if (fields.metrics !== undefined) result['metrics'] = fields.metrics;
  if (labelMap) result['metadata'] = labelMap;
  for (const [name, item] of Object.entries(fields)) {
    if (name.startsWith('x_') && item !== undefined) result[name] = item;
  }
  return result as unknown as Job;
}

function readError(fields: z.infer<typeof jobError>): JobError {
  return withoutFoldersIn(contractFields(jobError, fields) as Json) as unknown as JobError;
}

/** A progress snapshot; `null` and half ones are none. */
export function readProgress(json: unknown): Progress | undefined {
  if (json === null || json === undefined) return undefined;
  const parsed = progress.safeParse(json);
  return parsed.success ? (contractFields(progress, parsed.data) as Progress) : undefined;
}

export function readOutput(json: unknown): Output | undefined {
  const parsed = output.safeParse(json);
  if (!parsed.success) return undefined;
  const { type, ...rest } = contractFields(output, parsed.data);
  const folder = folderFields(rest.id);
  return { ...folder, ...rest, type: type ?? outputTypeOf(rest.content_type) } as unknown as Output;
}

/** v1 has folders, v2 does not; the ids of one server state more than its fields. */
function folderFields(id: string): Pick<Output, 'x_subfolder' | 'x_temp'> {
  const file = engineFileOf(id);
  if (!file) return {};
  const { subfolder, type } = file;
  return {
    ...(subfolder !== '' && { x_subfolder: subfolder }),
    ...(type === 'temp' && { x_temp: true }),
  };
}

export function readAsset(json: unknown): Asset | undefined {
  const parsed = asset.safeParse(json);
  return parsed.success ? (contractFields(asset, parsed.data) as Asset) : undefined;
}

export type StatusData = z.infer<typeof statusEvent>;

export function readStatus(json: unknown): StatusData | undefined {
  const parsed = statusEvent.safeParse(json);
  return parsed.success ? (contractFields(statusEvent, parsed.data) as StatusData) : undefined;
}

/** The answer of `GET /jobs/{id}/workflow`. */
export function readWorkflow(
  json: Json | undefined,
): { readonly workflow: Graph; readonly format: 'api' | 'save' } | undefined {
  if (!isJsonObject(json) || !isJsonObject(json['workflow'])) return undefined;
  const format = json['format'] === 'save' ? 'save' : 'api';
  return { workflow: json['workflow'] as Graph, format };
}

/** Labels are a map, or with one server a text, which we fill with the map. */
function readLabels(metadata: Json | undefined): Job['metadata'] | undefined {
  if (metadata === null || metadata === undefined) return undefined;
  const map = labels.safeParse(typeof metadata === 'string' ? parseLabelText(metadata) : metadata);
  return map.success ? map.data : undefined;
}

function parseLabelText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Fields of the contract, and vendor fields; others are dropped, and so is what is not there. */
function contractFields<T extends JsonObject | { readonly [key: string]: unknown }>(
  schema: { readonly shape: { readonly [key: string]: unknown } },
  value: T,
): T {
  const entries = Object.entries(value).filter(
    ([key, item]) => item !== undefined && (key in schema.shape || key.startsWith('x_')),
  );
  return Object.fromEntries(entries) as T;
}

function outputTypeOf(contentType: string): OutputType {
  const family = contentType.split('/', 1)[0] ?? '';
  const labelMap = OUTPUT_TYPES.find((type) => type === family);
  return labelMap ?? 'file';
}
