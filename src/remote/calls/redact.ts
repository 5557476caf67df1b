import type { JobEvent, V2Error } from '../../protocol/job-api.ts';
import { type Json, mapParts } from '../../protocol/json.ts';
import { REMOVED } from '../../protocol/url-credentials.ts';
import type { Job } from '../../protocol/v2.ts';

/** Secrets that were sent with a call and may be repeated in its answers. */
export type Secrets = readonly string[];

/** Shorter texts are ordinary words, or empty. */
const MIN_SECRET_CHARS = 4;

function redactText(text: string, secrets: Secrets): string {
  return secrets.reduce(
    (clear, secret) =>
      secret.length < MIN_SECRET_CHARS ? clear : clear.replaceAll(secret, REMOVED),
    text,
  );
}

/** Returns a value without the secrets in its texts and in the names of its members. */
function redact(value: Json, secrets: Secrets): Json {
  const clear = (text: string): string => redactText(text, secrets);
  return typeof value === 'string'
    ? clear(value)
    : mapParts(value, (part) => redact(part, secrets), clear);
}

/** Redacts members. Names of the contract stay unchanged, even when they equal a key. */
function redactMembers<T extends object>(value: T, secrets: Secrets): T {
  if (secrets.length === 0) return value;
  return mapParts(value as Json, (part) => redact(part, secrets)) as T;
}

export function redactError(error: V2Error, secrets: Secrets): V2Error {
  const { code, message, details } = error;
  return { ...error, ...redactMembers({ code, message, details }, secrets) };
}

/** Redacts a job. Its outputs stay unchanged, since their names and links must work. */
export function redactJob(job: Job, secrets: Secrets): Job {
  const { error, progress, x_ui: ui } = job;
  return {
    ...job,
    error: error && redactMembers(error, secrets),
    progress: progress && redactMembers(progress, secrets),
    ...(ui && { x_ui: redactMembers(ui, secrets) }),
  };
}

export function redactEvent(event: JobEvent, secrets: Secrets): JobEvent {
  if (!EVENTS_WITH_TEXT.has(event.event)) return event;
  return { ...event, data: redactMembers(event.data, secrets) } as JobEvent;
}

/** The events with texts of the service's own. */
const EVENTS_WITH_TEXT: ReadonlySet<JobEvent['event']> = new Set(['progress', 'x_node', 'x_text']);
