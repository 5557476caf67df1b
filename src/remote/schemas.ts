import { type Json, LosslessNumber, isJsonObject } from '../protocol/json.ts';
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
  outputTypeOf,
} from '../protocol/v2.ts';
import { addVendorFields } from './vendor-fields.ts';
import { hasControlCharacter } from '../protocol/control-characters.ts';
import { engineFileOf } from '../protocol/engine-file.ts';
import { withoutFolders, withoutFoldersIn } from './files/upload-paths.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** The latest time of `Date`, less a day for an expiry after it. */
const MAX_TIME_MS = 8_640_000_000_000_000 - DAY_MS;
/** Used when the service states no expiry, so that such a link is never stored. */
const EPOCH = new Date(0).toISOString();

/** The result for a value that the contract does not allow. */
const INVALID = Symbol('invalid');

/** Reads one member. `undefined` leaves it out; `INVALID` makes the whole object invalid. */
type Reader = (value: unknown) => unknown;

/** The members of the contract. Others are dropped, unless they are vendor fields. */
type Readers<T> = { readonly [name in Exclude<keyof T & string, `x_${string}`>]-?: Reader };

type Members = { readonly [name: string]: unknown };

const text: Reader = (value) => (typeof value === 'string' ? value : INVALID);
const number: Reader = (value) => {
  const read = value instanceof LosslessNumber ? Number(value.toString()) : value;
  return typeof read === 'number' && Number.isFinite(read) ? read : INVALID;
};
const count: Reader = (value) => {
  const read = number(value);
  return typeof read === 'number' && read >= 0 ? read : 0;
};
const share: Reader = (value) => {
  const read = number(value);
  return typeof read === 'number' ? Math.min(1, Math.max(0, read)) : INVALID;
};
/**
 * Reads an id. Ids are used as keys here, where a NUL would change their meaning, and in addresses,
 * which cannot have half of a surrogate pair. Any other text is accepted.
 */
const id: Reader = (value) =>
  typeof value === 'string' && value !== '' && !/[\0\p{Surrogate}]/u.test(value) ? value : INVALID;
const mediaType: Reader = (value) =>
  typeof value === 'string' && !hasControlCharacter(value) ? value : 'application/octet-stream';
const time: Reader = (value) =>
  typeof value === 'string' && Date.parse(value) < MAX_TIME_MS ? value : INVALID;
const texts: Reader = (value) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : INVALID;
const flag: Reader = (value) => (typeof value === 'boolean' ? value : INVALID);
/** Reads a status. A service may have states of its own: a job in such a state has not ended. */
const status: Reader = (value) => {
  if (typeof value !== 'string') return INVALID;
  return JOB_STATUSES.find((known) => known === value) ?? 'running';
};
const outputType: Reader = (value) => OUTPUT_TYPES.find((known) => known === value);

function or(reader: Reader, instead: unknown): Reader {
  return (value) => {
    const read = reader(value);
    return read === INVALID ? instead : read;
  };
}

function optional(reader: Reader): Reader {
  return (value) => (value === undefined ? undefined : reader(value));
}

const maybeText = or(text, null);
const maybeHash = or(id, null);
const maybeTime = or(time, null);
const maybeNumber = or(number, null);
const anyText = or(text, '');

const PROGRESS: Readers<Progress> = {
  value: share,
  nodes_done: count,
  nodes_total: count,
  current_node: optional(maybeText),
  current_node_class: optional(maybeText),
  step: optional(maybeNumber),
  steps: optional(maybeNumber),
  message: optional(maybeText),
};

const OUTPUT: Readers<Output> = {
  // Empty when the worker named no node.
  node_id: anyText,
  name: anyText,
  type: outputType,
  content_type: mediaType,
  // One server states 0 for every file.
  size_bytes: count,
  id,
  hash: maybeHash,
  url: anyText,
  url_expires_at: or(time, EPOCH),
  job_id: optional(maybeText),
};

const JOB_ERROR: Readers<JobError> = {
  code: or(text, 'job_failed'),
  message: or(text, 'The job failed.'),
  node_id: optional(maybeText),
  class_type: optional(maybeText),
  traceback: optional(maybeText),
};

const ASSET: Readers<Asset> = {
  id,
  hash: maybeHash,
  size_bytes: count,
  content_type: mediaType,
  created_at: (value) => or(time, new Date().toISOString())(value),
  url: anyText,
  url_expires_at: or(time, EPOCH),
  file_path: or(text, undefined),
  created_new: or(flag, undefined),
  expires_at: optional(maybeTime),
  job_id: optional(maybeText),
  tags: or(texts, undefined),
};

/**
 * Returns the members that these readers accept, and vendor fields; `undefined` when the object is
 * invalid.
 */
function readMembers<T>(readers: Readers<T>, json: unknown): T | undefined {
  if (!isJsonObject(json as Json)) return undefined;
  const members = json as Members;
  const result: { [name: string]: unknown } = {};
  for (const [name, reader] of Object.entries<Reader>(readers)) {
    const value = reader(members[name]);
    if (value === INVALID) return undefined;
    if (value !== undefined) result[name] = value;
  }
  return addVendorFields(result, members) as T;
}

/** Reads a job as any of the servers writes it; `undefined` when it is not a job. */
export function readJob(json: unknown): Job | undefined {
  if (!isJsonObject(json as Json)) return undefined;
  const members = json as Members;
  const jobId = id(members['id']);
  const jobStatus = status(members['status']);
  if (jobId === INVALID || jobStatus === INVALID) return undefined;
  const createdAt = createdAtOf(members);
  const expiresAt = or(time, undefined)(members['expires_at']);
  const metrics = readMetrics(members['metrics']);
  const labels = readLabels(members['metadata'] as Json | undefined);
  const outputs = Array.isArray(members['outputs']) ? members['outputs'] : [];
  const job = {
    id: jobId,
    status: jobStatus,
    created_at: createdAt,
    started_at: maybeTime(members['started_at']),
    completed_at: maybeTime(members['completed_at']),
    expires_at: expiresAt ?? new Date(Date.parse(createdAt) + DAY_MS).toISOString(),
    queue_position: maybeNumber(members['queue_position']),
    progress: readProgress(members['progress']) ?? null,
    outputs: outputs.flatMap((item) => readOutput(item) ?? []),
    error: readError(members['error']),
    urls: readUrls(members['urls']),
    ...(metrics && { metrics }),
    ...(labels && { metadata: labels }),
  };
  return addVendorFields(job, members) as unknown as Job;
}

function readUrls(json: unknown): Job['urls'] {
  const urls = isJsonObject(json as Json) ? (json as Members) : {};
  const urlOf = (name: keyof Job['urls']) => anyText(urls[name]) as string;
  return { self: urlOf('self'), events: urlOf('events'), cancel: urlOf('cancel') };
}

/** Returns the time of creation, which has another name in a list of jobs. */
function createdAtOf(members: Members): string {
  const stated = [members['created_at'], members['create_time']];
  const first = stated.find((value) => time(value) !== INVALID);
  return (first as string | undefined) ?? new Date().toISOString();
}

function readMetrics(json: unknown): Members | undefined {
  if (!isJsonObject(json as Json)) return undefined;
  const entries = Object.entries(json as Members);
  return Object.fromEntries(entries.map(([name, value]) => [name, maybeNumber(value)]));
}

function readError(json: unknown): JobError | null {
  const error = readMembers(JOB_ERROR, json);
  return error ? (withoutFoldersIn(error as unknown as Json) as unknown as JobError) : null;
}

/** Reads a progress snapshot; `undefined` for `null` and incomplete ones. */
export function readProgress(json: unknown): Progress | undefined {
  return readMembers(PROGRESS, json);
}

export function readOutput(json: unknown): Output | undefined {
  const read = readMembers(OUTPUT, json);
  if (!read) return undefined;
  const type = (read.type as OutputType | undefined) ?? outputTypeOf(read.content_type);
  return { ...folderFields(read.id), ...read, type };
}

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

export function readAsset(json: unknown): Asset | undefined {
  return readMembers(ASSET, json);
}

export type StatusData = Pick<Job, 'status' | 'x_cached_nodes'> & {
  readonly queue_position?: number | null;
};

const STATUS: Readers<StatusData> = {
  status,
  queue_position: optional(maybeNumber),
};

export function readStatus(json: unknown): StatusData | undefined {
  return readMembers(STATUS, json);
}

/** Reads the answer of `GET /jobs/{id}/workflow`. */
export function readWorkflow(
  json: Json | undefined,
): { readonly workflow: Graph; readonly format: 'api' | 'save' } | undefined {
  if (!isJsonObject(json) || !isJsonObject(json['workflow'])) return undefined;
  const format = json['format'] === 'save' ? 'save' : 'api';
  return { workflow: json['workflow'] as Graph, format };
}

/** Reads labels. They are a map or, at one server, a text that Holdover fills with the map. */
function readLabels(metadata: Json | undefined): Job['metadata'] | undefined {
  if (metadata === null || metadata === undefined) return undefined;
  const map = typeof metadata === 'string' ? parseLabelText(metadata) : metadata;
  if (!isJsonObject(map)) return undefined;
  const areTexts = Object.values(map).every((label) => typeof label === 'string');
  return areTexts ? (map as Job['metadata']) : undefined;
}

function parseLabelText(labels: string): Json | undefined {
  try {
    return JSON.parse(labels) as Json;
  } catch {
    return undefined;
  }
}
