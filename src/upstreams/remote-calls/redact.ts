import type { JobEvent, V2Error } from '../../protocol/job-api.ts';
import { type Json, isJsonObject } from '../../protocol/json.ts';
import type { Job } from '../../protocol/v2.ts';

/** Secrets that were sent with a call and may be repeated in its answers. */
export type Secrets = readonly string[];

/** Shorter ones are words, or nothing at all. */
const MIN_SECRET_CHARS = 4;

function redactText(text: string, secrets: Secrets): string {
  return secrets.reduce(
    (clear, secret) =>
      secret.length < MIN_SECRET_CHARS ? clear : clear.replaceAll(secret, '[removed]'),
    text,
  );
}

/** A value whose texts, names of members included, are without them. */
function redact(value: Json, secrets: Secrets): Json {
  if (typeof value === 'string') return redactText(value, secrets);
  if (Array.isArray(value)) return value.map((item) => redact(item, secrets));
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, item]) => [redactText(name, secrets), redact(item, secrets)]),
  );
}

export function redactError(error: V2Error, secrets: Secrets): V2Error {
  if (secrets.length === 0) return error;
  const { code, message, details } = error;
  return {
    ...error,
    code: redactText(code, secrets),
    message: redactText(message, secrets),
    details: redact(details, secrets),
  };
}

/** Outputs stay as they are: what their texts name and link to must be found. */
export function redactJob(job: Job, secrets: Secrets): Job {
  const { error, progress, x_ui: ui } = job;
  if (secrets.length === 0 || (!error && !progress && !ui)) return job;
  return {
    ...job,
    error: error && redactMembers(error, secrets),
    progress: progress && redactMembers(progress, secrets),
    ...(ui && { x_ui: redactMembers(ui, secrets) }),
  };
}

export function redactEvent(event: JobEvent, secrets: Secrets): JobEvent {
  if (secrets.length === 0 || !EVENTS_WITH_TEXT.has(event.event)) return event;
  return { ...event, data: redactMembers(event.data, secrets) } as JobEvent;
}

/** Events with texts of the service's own. */
const EVENTS_WITH_TEXT: ReadonlySet<JobEvent['event']> = new Set(['progress', 'x_node', 'x_text']);

/** Member names of the contract are not changed, even when they equal a key. */
function redactMembers<T extends object>(value: T, secrets: Secrets): T {
  const entries = Object.entries(value);
  return Object.fromEntries(
    entries.map(([name, item]) => [name, redact(item as Json, secrets)]),
  ) as T;
}
