import { createHash } from 'node:crypto';
import type { ReplayEnd, ReplayHolder, ReplayRow, ReplayStore } from '../ledger/ledger.ts';
import type { ModelLimits } from './limits.ts';
import { type RouterReply, type ReplyError, Unavailable, replyError } from './reply.ts';

/** A key that a running call holds. */
export type KeyHold = {
  /** Before the answer is sent: stores it for replay, or frees the key. */
  settle(reply: RouterReply): Promise<void>;
  /** Marks the key as used: the answer was sent, but did not arrive completely. */
  consume(): Promise<void>;
  release(): Promise<void>;
  /** Ends the call, whatever its outcome. */
  end(): void;
};

type ReplaysOptions = {
  readonly store: ReplayStore;
  readonly now: () => number;
  readonly limits: ModelLimits;
  /** True when several servers may have the store. */
  readonly isShared: boolean;
};

type Reserved = Parameters<ReplayStore['reserve']>[0];

/** The seconds after which a retry may find its original answered. */
const IN_FLIGHT_RETRY_S = 2;
/**
 * The statuses below 500 that charge nothing and may change at a retry: the caller adds credits,
 * waits, or had disconnected.
 */
const RELEASING_STATUSES: readonly number[] = [402, 408, 425, 429, 499];

/**
 * The time for a call outside of its model: its end is recorded, and the clocks of two servers
 * differ.
 */
const AROUND_RUN_MS = 30_000;

/**
 * The idempotency keys of all callers. A call that no longer runs was ended by a kill, was never
 * answered, and holds no key. A call of another server counts as running until its deadline.
 */
export class Replays {
  readonly #options: ReplaysOptions;
  /** The time at which each call that runs here took its key. */
  readonly #running = new Map<string, number>();

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  /** Reserves the key for this call, or returns the reply to a retry. */
  async hold(
    request: Omit<ReplayHolder, 'requestId'> & { requestId: string; fingerprint: string },
  ): Promise<KeyHold | RouterReply> {
    const row = { ...request, atMs: this.#options.now() };
    this.#running.set(request.requestId, row.atMs);
    const found = await this.#reserve(row).catch((error: unknown) => {
      this.#running.delete(request.requestId);
      throw error;
    });
    if (found === undefined) return this.#keyHoldFor(request);
    this.#running.delete(request.requestId);
    return replyToRetry(found, request.fingerprint);
  }

  sweep(): Promise<void> {
    return this.#options.store.expire(this.#freeBeforeMs());
  }

  async #reserve(row: Reserved): Promise<ReplayRow | undefined> {
    const { store } = this.#options;
    const found = await orUnavailable(store.reserve(row, this.#freeBeforeMs()));
    if (found?.state !== 'reserved' || this.#mayRun(found)) return found;
    await orUnavailable(store.release(found));
    return await orUnavailable(store.reserve(row, this.#freeBeforeMs()));
  }

  #mayRun({ requestId, atMs }: ReplayRow): boolean {
    const { now, limits, isShared } = this.#options;
    const othersRunMs = isShared ? limits.deadlineMs + AROUND_RUN_MS : 0;
    return this.#running.has(requestId) || now() - atMs < othersRunMs;
  }

  #freeBeforeMs(): number {
    const { now, limits } = this.#options;
    // A call outlives the time that answers are stored when the clock is set forward, or when calls
    // may take long.
    return Math.min(now() - limits.replayMs, ...this.#running.values());
  }

  #keyHoldFor(holder: ReplayHolder): KeyHold {
    const { store, now } = this.#options;
    return {
      release: () => orUnavailable(store.release(holder)),
      consume: () => orUnavailable(store.settle(holder, consumedAt(now()))),
      end: () => void this.#running.delete(holder.requestId),
      settle: (reply) => this.#settle(holder, reply),
    };
  }

  async #settle(holder: ReplayHolder, reply: RouterReply): Promise<void> {
    const { store, now, limits } = this.#options;
    if (reply.status >= 500 || RELEASING_STATUSES.includes(reply.status))
      return await orUnavailable(store.release(holder));
    const body = Buffer.from(reply.body ?? '');
    const { status, contentType = '' } = reply;
    const kept = body.length + (await store.recordedBytes());
    const isKept = body.length <= limits.replayBytes && kept <= limits.replayBudgetBytes;
    const recorded = { state: 'recorded', atMs: now(), status, contentType, body } as const;
    await orUnavailable(store.settle(holder, isKept ? recorded : consumedAt(now())));
  }
}

function consumedAt(atMs: number): ReplayEnd {
  return { state: 'consumed', atMs, status: null, contentType: null, body: null };
}

/** Identifies a request by its model and its bytes. */
export function fingerprintOf(parts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part);
  return hash.digest('hex');
}

function replyToRetry(row: ReplayRow, fingerprint: string): RouterReply {
  // Also to another request: the key is free again when the call charges nothing.
  if (row.state === 'reserved') {
    const headers = { 'Retry-After': String(IN_FLIGHT_RETRY_S) };
    const detail = 'The call with this Idempotency-Key is still running: send it again later.';
    return replyError('concurrency_limit_exceeded', detail, { status: 409, headers });
  }
  if (row.fingerprint !== fingerprint) {
    return conflict('This Idempotency-Key was sent with a different request: use a new one.');
  }
  if (row.state === 'consumed' || row.status === null || row.body === null) {
    return conflict(
      'The call with this Idempotency-Key is done, but its answer was not kept: use a new key.',
    );
  }
  const headers = { 'Idempotent-Replayed': 'true' };
  const { status, body } = row;
  const bucket = status >= 400 ? bucketOf(row) : undefined;
  return {
    status,
    body,
    headers,
    ...(row.contentType && { contentType: row.contentType }),
    ...(bucket && { bucket }),
  };
}

/** Returns the bucket of a recorded error. A 422 contains none. */
function bucketOf({ body }: ReplayRow): ReplyError['bucket'] {
  const { error_type: bucket } = JSON.parse(Buffer.from(body ?? '{}').toString()) as {
    error_type?: ReplyError['bucket'];
  };
  return bucket ?? 'invalid_input';
}

function conflict(detail: string): RouterReply {
  return replyError('invalid_input', detail, { status: 409 });
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw new Unavailable('the ledger does not answer', { cause });
  }
}
