import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/log.ts';
import { errorCodeOf } from '../../protocol/error-codes.ts';
import { type Result, type V2Error, ok, v2Error } from '../../protocol/job-api.ts';
import { readRetryAfter } from '../../http/retry-after.ts';
import type { Account } from './accounts.ts';
import type { HttpAnswer, RequestHeaders } from './exchange.ts';
import { logTooLarge, tooLargePart, type Connections, type HttpRequest } from './connections.ts';
import { type ServiceReply, lostError, readBody, retryAfterMs, toError } from './errors.ts';
import type { UpstreamCapabilities } from '../capabilities.ts';
import type { RemoteLimits } from '../limits.ts';
import type { UpstreamLinks } from './upstream-links.ts';

type UpstreamCall = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE';
  readonly path: string;
  readonly headers?: RequestHeaders;
  readonly body?: string | AsyncIterable<Buffer>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
};

/** The result of one attempt: a complete answer, or the reason why there is none. */
export type CallOutcome =
  | { readonly ok: true; readonly reply: ServiceReply }
  | { readonly ok: false; readonly wasSent: boolean; readonly cause: Error };

/** The parts of the client of one upstream that all other parts use. */
export type RemoteClient = {
  readonly calls: UpstreamCalls;
  readonly links: UpstreamLinks;
  readonly capabilities: UpstreamCapabilities;
  readonly limits: RemoteLimits;
  readonly clock: Clock;
  readonly log: Logger;
};

/** The calls of one upstream. */
export class UpstreamCalls {
  readonly #connections: Connections;
  readonly #options: Omit<RemoteClient, 'calls' | 'links'>;

  constructor(connections: Connections, options: Omit<RemoteClient, 'calls' | 'links'>) {
    this.#connections = connections;
    this.#options = options;
  }

  /** Makes one attempt and reads the whole answer. */
  async once(account: Account | undefined, call: UpstreamCall): Promise<CallOutcome> {
    const { limits, log, capabilities } = this.#options;
    const answer = await this.#connections.sendAndCollect(requestOf(account, call, limits));
    if (!answer.ok) {
      logTooLarge(log, call, answer.cause);
      const event = 'upstream.call_failed';
      const reason = codeOf(answer.cause);
      log.debug({ event, method: call.method, reason }, 'a call to the job service failed');
      return answer;
    }
    const { status, headers } = answer;
    const dateMs = Date.parse(String(headers.date));
    if (!Number.isNaN(dateMs)) capabilities.clockAheadMs = dateMs - Date.now();
    // A 404 also shows that the credential was accepted.
    if (account && (status < 400 || status === 404)) account.credentialRefusal = undefined;
    return { ok: true, reply: { status, headers, ...readBody(answer.text) } };
  }

  /**
   * Makes a call that is safe to repeat: waits while the account is paused, and retries a lost call
   * once.
   */
  async callIdempotent(account: Account, call: UpstreamCall): Promise<Result<ServiceReply>> {
    const { limits, clock } = this.#options;
    const deadlineMs = clock.now() + limits.readBudgetMs;
    let error: V2Error | undefined;
    for (let lostAttempts = 0; lostAttempts < 2;) {
      const budgetMs = deadlineMs - clock.now();
      if (!(await account.gate.waitUntilOpen({ budgetMs }))) break;
      const outcome = await this.once(account, call);
      if (!outcome.ok) {
        error = lostError(outcome.cause);
        // A second answer would be as large.
        if (tooLargePart(outcome.cause)) break;
        lostAttempts += 1;
        if (lostAttempts < 2) await clock.sleep(limits.readRetryMs);
        continue;
      }
      if (outcome.reply.status < 300) return ok(outcome.reply);
      error = this.recordRefusal(account, outcome.reply);
      if (!isAccountWide(error)) break;
    }
    return { ok: false, error: error ?? pausedError(account) };
  }

  /** Turns a refusal into an error and records it in the account. */
  recordRefusal(account: Account, reply: ServiceReply): V2Error {
    const { limits, clock } = this.#options;
    const error = toError(reply, account.key);
    if (isAccountWide(error)) {
      account.gate.closeFor(retryAfterMs(readRetryAfter(reply.headers, Date.now()), limits));
    }
    if (error.status === 401 || error.code === 'sso_required') {
      account.credentialRefusal = {
        error,
        untilMs: clock.now() + limits.refusedPauseMs,
        isBeingChecked: false,
      };
    }
    return error;
  }

  /** Returns the head of an answer. The caller reads the body. */
  async open(account: Account, call: UpstreamCall): Promise<HttpAnswer> {
    const { limits, log } = this.#options;
    const request = requestOf(account, call, limits);
    const bodyTimeout = limits.bodyIdleTimeoutMs;
    const answer = await this.#connections.send({ ...request, bodyTimeout });
    if (!answer.ok) logTooLarge(log, call, answer.cause);
    return answer;
  }
}

/**
 * True when all calls of the account have to wait. A `429` about a subscription asks for no pause.
 */
export function isAccountWide({ status, code }: V2Error): boolean {
  return status === 429 && errorCodeOf(code)?.isOfOneCall !== true && !/subscription/i.test(code);
}

function requestOf(
  account: Account | undefined,
  call: UpstreamCall,
  limits: RemoteLimits,
): HttpRequest {
  const { method, path, body = null, signal = null, timeoutMs = limits.readTimeoutMs } = call;
  return {
    method,
    path,
    headers: {
      'user-agent': 'holdover',
      accept: 'application/json',
      'accept-encoding': 'identity',
      ...(account?.key !== undefined && { authorization: `Bearer ${account.key}` }),
      ...(typeof body === 'string' && { 'content-type': 'application/json' }),
      ...call.headers,
    },
    // The types of the library lack iterables.
    body: body as NonNullable<HttpRequest['body']>,
    signal,
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
  };
}

/** Returns the error that replaces a call while the account is paused. */
export function pausedError({ gate }: Account): V2Error {
  const retryAfterSeconds = Math.max(1, Math.ceil(gate.waitMs() / 1000));
  return v2Error(429, 'rate_limited', 'The job service asked for a pause.', { retryAfterSeconds });
}

function codeOf(cause: Error & { readonly code?: unknown }): string {
  return typeof cause.code === 'string' ? cause.code : cause.name;
}
