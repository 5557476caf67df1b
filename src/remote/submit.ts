import { randomUUID } from 'node:crypto';
import {
  type Result,
  type SubmitRequest,
  type V2Error,
  isAboutContent,
  ok,
  v2Error,
} from '../protocol/job-api.ts';
import { type Json, isJsonObject } from '../protocol/json.ts';
import { IS_TERMINAL, type Job } from '../protocol/v2.ts';
import { isCapacityRefusal } from '../translate/prompt-refusal.ts';
import type { Account } from './calls/accounts.ts';
import type { CallOutcome, RemoteClient } from './calls/calls.ts';
import { type ServiceReply, isHtml, retryAfterMs, toError, unreachable } from './calls/errors.ts';
import { redactError } from './calls/redact.ts';
import type { RemoteServices } from './remote-services.ts';
import { readJob } from './schemas.ts';
import { nextFormat, rememberFormat, type SubmitFormat, submitBody } from './submit-format.ts';

type Submission = {
  readonly account: Account;
  readonly request: SubmitRequest;
  readonly key: string;
};

/**
 * Submits a prompt. The error says if there may be a job: `unknown` also stands for each answer of a
 * proxy or of a service that failed. The keys of the prompt are removed from all that is returned.
 */
export async function submitJob(
  services: RemoteServices,
  account: Account,
  request: SubmitRequest,
): Promise<Result<Job>> {
  const { client } = services;
  const submission = { account, request, key: request.idempotencyKey ?? randomUUID() };
  const submitted = await submitInFormats(client, submission);
  if (submitted.ok) return accept(services, submission, submitted.value);
  return { ok: false, error: redactError(submitted.error, Object.values(request.extraData)) };
}

/**
 * Makes one attempt to submit. After a certain refusal that may be about the format, the same
 * submission is sent in another format.
 */
async function submitInFormats(client: RemoteClient, submission: Submission): Promise<Result<Job>> {
  const { capabilities } = client;
  const { request } = submission;
  let firstRefusal: V2Error | undefined;
  for (let format = await submitFormatFor(client, request); ;) {
    const result = await attempt(client, submission, format);
    if (result.ok) {
      rememberFormat(capabilities, format, request);
      return result;
    }
    const { error } = result;
    if (error.outcome !== undefined) return result;
    const next = nextFormat(capabilities, format, { request, error });
    // The refusal of the first format says more than that of the second one.
    if (!next) return { ok: false, error: (isAboutContent(error) && firstRefusal) || error };
    if (next.assetMode !== format.assetMode) firstRefusal = error;
    format = next;
  }
}

async function submitFormatFor(
  client: RemoteClient,
  request: SubmitRequest,
): Promise<SubmitFormat> {
  const { assetMode, labels, authToken } = client.capabilities;
  const wantsVendor = request.order !== undefined || request.provenance !== undefined;
  const vendorFields = wantsVendor && (await isHoldover(client));
  return { assetMode, labels, authToken, vendorFields };
}

/** True for a Holdover with its own engine: no other service reports `embedded` as its upstream. */
async function isHoldover({ calls, links, capabilities, limits, clock }: RemoteClient) {
  const { holdover: known } = capabilities;
  if (known && clock.now() < known.untilMs) return known.isOne;
  const path = links.target('health');
  const timeoutMs = limits.discoverTimeoutMs;
  const outcome = await calls.once(undefined, { method: 'GET', path, timeoutMs });
  const answer = outcome.ok ? upstreamOf(outcome.reply) : undefined;
  const isOne = answer === undefined ? known?.isOne === true : answer === 'embedded';
  const forMs = answer === undefined ? limits.discoverRetryMs : limits.discoverAgainMs;
  capabilities.holdover = { isOne, untilMs: clock.now() + forMs };
  return isOne;
}

/**
 * Returns the upstream that a service reports; `null` for none, `undefined` while it starts or is
 * unavailable.
 */
function upstreamOf({ status, json, isPage }: ServiceReply): Json | null | undefined {
  if (status >= 500 || status === 429 || isPage) return undefined;
  return isJsonObject(json) ? (json['upstream'] ?? null) : null;
}

/** Sends the submission, when the account may call and the semaphore admits it. */
function attempt(
  client: RemoteClient,
  { account, request, key }: Submission,
  format: SubmitFormat,
): Promise<Result<Job>> {
  const { gate, semaphore } = account.submissions;
  return semaphore(async () => {
    const pauseMs = Math.max(account.gate.waitMs(), gate.waitMs());
    if (pauseMs > 0) return { ok: false, error: tooBusy(pauseMs) };
    const answer = await client.calls.once(account, {
      method: 'POST',
      path: client.links.target('jobs'),
      headers: { 'idempotency-key': key },
      body: submitBody(request, format),
      timeoutMs: client.limits.submitTimeoutMs,
    });
    const result = interpretAnswer(client, account, answer);
    if (!result.ok && isCapacityRefusal(result.error))
      gate.closeFor(retryAfterMs(result.error.retryAfterSeconds, client.limits));
    return result;
  });
}

/** True when an answer does not show if a job exists: proxies have status codes of their own. */
function isAmbiguous(status: number): boolean {
  return AMBIGUOUS.has(status) || (status >= 500 && status !== 501);
}

const AMBIGUOUS = new Set([408, 425, 499]);

function interpretAnswer(client: RemoteClient, account: Account, answer: CallOutcome): Result<Job> {
  if (!answer.ok) {
    const outcome = answer.wasSent ? 'unknown' : 'not sent';
    return { ok: false, error: { ...unreachable(), outcome } };
  }
  const { reply } = answer;
  const { status, headers } = reply;
  if (status < 300) {
    const job = readJob(reply.json);
    if (job) return ok(job);
    const error = { ...toError(reply, account.key), status: 502, code: 'bad_upstream_response' };
    // A proxy in between requires a login; the service never got the submission.
    const isPage = status === 200 && isHtml(headers);
    return { ok: false, error: isPage ? error : { ...error, outcome: 'unknown' } };
  }
  if (isAmbiguous(status))
    return { ok: false, error: { ...toError(reply, account.key), outcome: 'unknown' } };
  const error = client.calls.recordRefusal(account, reply);
  // A request under the same key is in progress.
  const isInFlight = status === 409 && error.retryAfterSeconds !== undefined;
  return { ok: false, error: isInFlight ? { ...error, outcome: 'unknown' } : error };
}

function accept(
  { jobSearch, events }: RemoteServices,
  { account, request }: Submission,
  job: Job,
): Result<Job> {
  const { snapshots } = events;
  jobSearch.claim(job.id, request.metadata);
  snapshots.noteSecrets(account, job.id, Object.values(request.extraData));
  const shown = snapshots.store(account, job);
  // An ended job is read once more: some servers answer a submission with an incomplete job.
  if (IS_TERMINAL[job.status]) snapshots.invalidate(account, job.id);
  return ok(shown);
}

function tooBusy(pauseMs: number): V2Error {
  const retryAfterSeconds = Math.max(1, Math.ceil(pauseMs / 1000));
  const message = 'The job service has no room for more jobs right now.';
  return v2Error(429, 'queue_full', message, { retryAfterSeconds });
}
