import type { JobEvent } from '../../protocol/job-api.ts';
import type { Account } from '../remote-calls/accounts.ts';
import { type RemoteClient, isAccountWide } from '../remote-calls/calls.ts';
import { retryAfterMs } from '../remote-calls/errors.ts';
import { type StreamEnd, readStream } from './read-events.ts';
import type { HttpAnswer } from '../remote-calls/connections.ts';
import type { Secrets } from '../remote-calls/redact.ts';
import { readRefusal } from '../remote-calls/read-refusal.ts';

/** Result of one attempt to stream. */
export type StreamAttempt =
  | { readonly kind: 'read'; readonly end: StreamEnd }
  /** The upstream has no more streams: try again after `forMs`. */
  | { readonly kind: 'crowded'; readonly forMs: number }
  /** No stream this time; the next poll shows why. */
  | { readonly kind: 'none' };

type StreamRequest = {
  readonly account: Account;
  readonly path: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: JobEvent) => void;
  readonly secrets: Secrets;
};

/** Opens one event stream and reads it. A refusal updates the capabilities. */
export async function readStreamOnce(
  client: RemoteClient,
  request: StreamRequest,
): Promise<StreamAttempt> {
  const { calls, limits, log } = client;
  const { account, path, signal } = request;
  const headers = { accept: 'text/event-stream', 'cache-control': 'no-cache' };
  const answer = await calls.open(account, { method: 'GET', path, headers, signal });
  if (!answer.ok) return { kind: 'none' };
  const isStream = /^text\/event-stream\b/i.test(answer.headers['content-type'] ?? '');
  if (answer.status === 200 && isStream) {
    const end = await readStream(answer.body, {
      onEvent: request.onEvent,
      secrets: request.secrets,
      idleTimeoutMs: limits.streamIdleTimeoutMs,
      afterTerminalMs: limits.afterTerminalMs,
      maxEventChars: limits.maxEventChars,
    });
    if (end === 'too large') {
      const limit = limits.maxEventChars;
      const fields = { event: 'upstream.event_too_large', path, limit };
      log.warn(fields, 'cut off an event stream: one event is too large');
    }
    return { kind: 'read', end };
  }
  return readStreamRefusal(client, account, answer);
}

/** Reads a refusal and updates the capabilities. */
async function readStreamRefusal(
  { calls, capabilities, limits, clock }: RemoteClient,
  account: Account,
  answer: Extract<HttpAnswer, { ok: true }>,
): Promise<StreamAttempt> {
  const { status, headers, body } = answer;
  if (status === 429) {
    const error = calls.recordRefusal(account, await readRefusal(answer));
    if (isAccountWide(error)) return { kind: 'none' };
    const forMs = retryAfterMs(error.retryAfterSeconds ?? DEFAULT_RETRY_SECONDS, limits);
    return { kind: 'crowded', forMs };
  }
  body.destroy();
  const isJson = /\bjson\b/i.test(headers['content-type'] ?? '');
  // A 404 in the contract's words is about the job; any other is a server that has no such route.
  const hasNoStreams = status === 501 || status === 405 || (status === 404 && !isJson);
  if (hasNoStreams) capabilities.pollOnlyUntilMs = clock.now() + limits.pollOnlyMs;
  else if (status < 400) capabilities.pollOnlyUntilMs = clock.now() + limits.oddStreamMs;
  return { kind: 'none' };
}

const DEFAULT_RETRY_SECONDS = 5;
