import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '../telemetry.ts';
import { type Result, type V2Error, ok } from '../wire/jobs.ts';
import { type Json, parseJson } from '../wire/json.ts';
import { readRetryAfter } from '../wire/retry-after.ts';
import type { Account } from './accounts.ts';
import { noteTooLarge, tooLargePart } from './bounds.ts';
import { type Reply, retryAfterMs, toError, tooLargeAnswer, unreachable } from './errors.ts';
import type { Facts } from './facts.ts';
import type { RemoteLimits } from './limits.ts';
import type { Connections, WireAnswer, WireRequest } from './pool.ts';

type Ask = Pick<WireRequest, 'method' | 'path'> & {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: WireRequest['body'];
  readonly timeoutMs?: number;
};

/** How one attempt went: a whole answer, or why there is none. */
export type Exchange =
  | { readonly kind: 'reply'; readonly reply: Reply }
  | { readonly kind: 'lost'; readonly wasSent: boolean; readonly cause: Error };

/** The calls of one upstream. */
export type Calls = {
  /** One attempt; the answer is read to its end. */
  once(account: Account | undefined, ask: Ask): Promise<Exchange>;
  /** A call that does no harm twice: waits for the account's turn, tries a lost one again. */
  read(account: Account, ask: Ask): Promise<Result<Reply>>;
  /** The head of an answer; the body is the caller's to read. */
  open(
    account: Account,
    ask: Ask & { readonly lane?: WireRequest['lane']; readonly signal?: AbortSignal },
  ): Promise<WireAnswer>;
  /** What a refusal says, after the account has heard it. */
  refusal(account: Account, reply: Reply): V2Error;
};

type Deps = {
  readonly connections: Connections;
  readonly limits: RemoteLimits;
  readonly clock: () => number;
  readonly log: Logger;
  readonly facts: Pick<Facts, 'clockAheadMs'>;
};

export function createCalls(deps: Deps): Calls {
  const { connections, limits, clock, log, facts } = deps;

  async function once(account: Account | undefined, ask: Ask): Promise<Exchange> {
    const answer = await connections.exchange(requestOf(account, ask, limits));
    if (!answer.ok) {
      noteTooLarge(log, ask, answer.cause);
      log.debug({ method: ask.method, reason: codeOf(answer.cause) }, 'upstream call failed');
      return { kind: 'lost', wasSent: answer.wasSent, cause: answer.cause };
    }
    const { status, headers } = answer;
    const dateMs = Date.parse(String(headers.date));
    if (!Number.isNaN(dateMs)) facts.clockAheadMs = dateMs - Date.now();
    // Whoever hears that something is not there was let in.
    if (account && (status < 400 || status === 404)) account.refused = undefined;
    const json = jsonOf(answer.text);
    const said = json === undefined ? { isPage: answer.text !== '' } : { json };
    return { kind: 'reply', reply: { status, headers, ...said } };
  }

  function refusal(account: Account, reply: Reply): V2Error {
    const error = toError(reply, account.key);
    if (isAccountWide(error)) {
      account.gate.shut(retryAfterMs(readRetryAfter(reply.headers, Date.now()), limits));
    }
    if (error.status === 401 || error.code === 'sso_required') {
      account.refused = {
        error,
        untilMs: clock() + limits.refusedPauseMs,
        isAskedAbout: false,
      };
    }
    return error;
  }

  async function read(account: Account, ask: Ask): Promise<Result<Reply>> {
    const deadlineMs = clock() + limits.readBudgetMs;
    let error: V2Error | undefined;
    for (let losses = 0; losses < 2;) {
      const budgetMs = deadlineMs - clock();
      if (!(await account.gate.pass({ budgetMs }))) break;
      const exchange = await once(account, ask);
      // A second one would be as large.
      if (exchange.kind === 'lost' && tooLargePart(exchange.cause)) return tooLargeAnswer();
      if (exchange.kind === 'lost') {
        error = unreachable();
        losses += 1;
        if (losses < 2) await delay(limits.readRetryMs);
        continue;
      }
      if (exchange.reply.status < 300) return ok(exchange.reply);
      error = refusal(account, exchange.reply);
      if (!isAccountWide(error)) break;
    }
    return { ok: false, error: error ?? paused(account) };
  }

  return {
    once,
    read,
    refusal,
    open: async (account, ask) => {
      const { lane = 'bodies', signal } = ask;
      const request = requestOf(account, ask, limits);
      const bodyTimeoutMs = limits.bodyIdleTimeoutMs;
      const more = { lane, bodyTimeoutMs, ...(signal && { signal }) };
      const answer = await connections.send({ ...request, ...more });
      if (!answer.ok) noteTooLarge(log, ask, answer.cause);
      return answer;
    },
  };
}

/** Whether all calls of the account have to wait. */
export function isAccountWide({ status, code }: Pick<V2Error, 'status' | 'code'>): boolean {
  return status === 429 && !OF_ONE_KIND.has(code) && !/subscription/i.test(code);
}

/** Of these `429` only calls of the same kind have to wait; that of a subscription asks for no pause. */
const OF_ONE_KIND = new Set(['queue_full', 'deployment_not_ready', 'too_many_streams']);

function requestOf(account: Account | undefined, ask: Ask, limits: RemoteLimits): WireRequest {
  const { method, path, body, timeoutMs = limits.readTimeoutMs } = ask;
  return {
    method,
    path,
    headers: headersOf(account, ask),
    body,
    headersTimeoutMs: timeoutMs,
    bodyTimeoutMs: timeoutMs,
    lane: typeof body === 'object' ? 'bodies' : 'calls',
  };
}

/** Put together name by name: every prompt comes by, and spreading is slow. */
function headersOf(account: Account | undefined, { body, headers }: Ask): WireRequest['headers'] {
  const all: Record<string, string> = {
    'user-agent': 'holdover',
    accept: 'application/json',
    'accept-encoding': 'identity',
  };
  if (account?.key !== undefined) all['authorization'] = `Bearer ${account.key}`;
  if (typeof body === 'string') all['content-type'] = 'application/json';
  return headers ? Object.assign(all, headers) : all;
}

function jsonOf(text: string): Json | undefined {
  try {
    return text === '' ? undefined : parseJson(text);
  } catch {
    return undefined;
  }
}

/** What is told instead of asking. */
export function paused({ gate }: Account): V2Error {
  const retryAfterSeconds = Math.max(1, Math.ceil(gate.waitMs() / 1000));
  const message = 'The job service asked for a pause.';
  return { status: 429, code: 'rate_limited', message, details: null, retryAfterSeconds };
}

function codeOf(cause: Error & { readonly code?: unknown }): string {
  return typeof cause.code === 'string' ? cause.code : cause.name;
}
