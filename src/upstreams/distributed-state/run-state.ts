import { MAX_ATTEMPTS } from '../jobs/job-lifecycle.ts';
import { type EndPatch, type RunState, stateOf } from './run-fields.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { ScriptArgument } from '../../lib/redis-scripts.ts';
import type { Redis } from '../../lib/redis.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import { encodeEvent } from './event-codec.ts';
import type { QueueKeys } from './redis-keys.ts';
import { priorityOf, scoreOf } from './priority.ts';
import { type QueueScripts, defineQueueScripts } from './run-scripts.ts';
import { TICKET_KEY } from './ticket-queue.ts';

/** Entries of a job's stream: far more than a subscriber can be behind. */
const MAX_ENTRIES = 10_000;
const PREVIEW_TTL_MS = 60_000;
/** How long subscribers can still read the end of a job. */
const ENDED_TTL_MS = 5 * 60_000;

/** How a worker continues with a claimed job. Writes under an older fence are stale. */
export type Claim =
  | { readonly kind: 'run'; readonly fence: number; readonly attempts: number }
  | { readonly kind: 'cancel'; readonly fence: number }
  | { readonly kind: 'lost'; readonly fence: number; readonly attempts: number }
  | { readonly kind: 'ended'; readonly patch: EndPatch };

/** `stale`: another process has the job; `cancel`: a client asked to cancel it. */
export type WriteResult = 'ok' | 'cancel' | 'stale';

/** The order of a requeued job, and the attempts it gets back. */
type RequeueOptions = { readonly order: number; readonly attemptsReturned: 0 | 1 };

/** A claimed job and its fencing token. */
export type FencedJob = { readonly id: string; readonly fence: number };

/**
 * A message of a job: an event is stored in the stream under its number, a preview is only
 * published.
 */
export type PublishItem =
  | { readonly kind: 'e'; readonly n: number; readonly text: string }
  | { readonly kind: 'p'; readonly bytes: Buffer; readonly isStored: boolean };

/** The unfinished jobs, shared by all processes; every change is one script. */
export class RunStateStore {
  readonly #redis: Redis;
  readonly #keys: QueueKeys;
  readonly #scripts: QueueScripts;

  constructor({ redis, keys }: { readonly redis: Redis; readonly keys: QueueKeys }) {
    this.#redis = redis;
    this.#keys = keys;
    this.#scripts = defineQueueScripts(redis);
  }

  /** Adds a job to the queue; does nothing for one that waits already or that a worker has. */
  async enqueue({ id, user, order }: Pick<JobRow, 'id' | 'user' | 'order'>): Promise<void> {
    const { entryCounter, highestOrder, queueChannel, bullPrefix } = this.#keys;
    const keys = [...this.#queueKeysOf(id), entryCounter, highestOrder];
    const ticketPrefix = `${bullPrefix}${TICKET_KEY}`;
    const args = [id, priorityOf(order), order, queueChannel, user, ticketPrefix];
    await this.#scripts.enqueue(keys.length, ...keys, ...args);
  }

  /**
   * The job a worker may run with this ticket; `undefined` when none waits. The worker has it until
   * `end`, `requeue` or `drop`.
   */
  async take(ticket: string): Promise<string | undefined> {
    const keys = this.#queueKeysOfAll();
    const id = await this.#scripts.take(keys.length, ...keys, ticket);
    return (id as string | null) ?? undefined;
  }

  /** Takes a waiting job out of the queue; false when it does not wait. */
  async withdraw(id: string): Promise<boolean> {
    const keys = this.#queueKeysOf(id);
    return (await this.#scripts.withdraw(keys.length, ...keys, id)) === 1;
  }

  /** Removes a job that needs no more work from the queue. */
  async drop(id: string, ticket = ''): Promise<void> {
    const keys = this.#queueKeysOf(id);
    await this.#scripts.drop(keys.length, ...keys, id, ticket);
  }

  /** The ticket with which a worker took a job. */
  async ticketOf(id: string): Promise<string | undefined> {
    return (await this.#redis.hget(this.#keys.run(id), 'ticket')) ?? undefined;
  }

  /** The job that a worker took with a ticket. */
  async takenBy(ticket: string): Promise<string | undefined> {
    return (await this.#redis.hget(this.#keys.tickets, ticket)) ?? undefined;
  }

  /** Ids of the jobs that workers have. */
  heldJobs(): Promise<string[]> {
    return this.#redis.hkeys(this.#keys.heldJobs);
  }

  /** How many jobs wait. */
  waiting(): Promise<number> {
    return this.#redis.zcard(this.#keys.waiting);
  }

  /** How many jobs of a user wait. */
  waitingOf(user: string): Promise<number> {
    return this.#redis.zcard(`${this.#keys.waitingOf}${user}`);
  }

  /** An order after everything queued so far. */
  async nextOrder(): Promise<number> {
    const highest = await this.#redis.get(this.#keys.highestOrder);
    return highest === null ? 0 : Math.floor(Number(highest)) + 1;
  }

  async claim(id: string, nowMs: number): Promise<Claim> {
    return await this.#claim(id, [nowMs, MAX_ATTEMPTS]);
  }

  /** Claims a job only to end it, from any worker that may have it. */
  async seize(id: string): Promise<Claim> {
    return await this.#claim(id, [0, '']);
  }

  /** Counts the attempt: the first node begins. Durable once this resolves. */
  async begin({ id, fence }: FencedJob): Promise<WriteResult> {
    return (await this.#scripts.begin(1, this.#keys.run(id), fence)) as WriteResult;
  }

  /** The worker that had this job under an earlier fence was slow, but did not crash. */
  async stillAlive({ id, fence }: FencedJob): Promise<void> {
    await this.#scripts.stillAlive(1, this.#keys.run(id), fence);
  }

  /** Publishes events and stores the fields they change. */
  async append(
    { id, fence }: FencedJob,
    items: readonly PublishItem[],
    fields: Readonly<Record<string, string>>,
  ): Promise<WriteResult> {
    const { run, eventStream, preview, eventChannel } = this.#keys;
    const pairs = Object.entries(fields);
    const keys = [run(id), eventStream(id), preview(id)];
    const head = [fence, eventChannel(id), MAX_ENTRIES, PREVIEW_TTL_MS, pairs.length];
    const args = items.flatMap((item): ScriptArgument[] =>
      item.kind === 'p' ? ['p', item.isStored ? 1 : 0, item.bytes] : ['e', item.n, item.text],
    );
    const reply = await this.#scripts.append(
      keys.length,
      ...keys,
      ...head,
      ...pairs.flat(),
      ...args,
    );
    return reply as WriteResult;
  }

  /** Decides the end of a job; `ok` also when it was decided before. */
  async end(
    { id, fence }: FencedJob,
    patch: EndPatch & { readonly status: string },
  ): Promise<WriteResult> {
    const { eventStream, eventChannel, queueChannel } = this.#keys;
    const { status } = patch;
    const keys = [...this.#queueKeysOf(id), eventStream(id)];
    const event = statusEvent(status as JobStatus, null);
    const args = [fence, eventChannel(id), id, status, JSON.stringify(patch), event, queueChannel];
    return (await this.#scripts.end(keys.length, ...keys, ...args)) as WriteResult;
  }

  /** Returns a claimed job to the queue. */
  async requeue(
    { id, fence }: FencedJob,
    { order, attemptsReturned }: RequeueOptions,
  ): Promise<WriteResult> {
    const { eventStream, eventChannel, queueChannel } = this.#keys;
    const keys = [...this.#queueKeysOf(id), eventStream(id)];
    const score = scoreOf(priorityOf(order));
    const event = statusEvent('queued', 0);
    const args = [fence, eventChannel(id), id, score, event, queueChannel, attemptsReturned];
    return (await this.#scripts.requeue(keys.length, ...keys, ...args)) as WriteResult;
  }

  /** Asks the worker of a job to cancel it; false when the job has ended. */
  async askCancel(id: string): Promise<boolean> {
    const { run, queueChannel } = this.#keys;
    return (await this.#scripts.askCancel(1, run(id), queueChannel, id)) === 'ok';
  }

  async isCancelAsked(id: string): Promise<boolean> {
    return (await this.#redis.hexists(this.#keys.run(id), 'cancel')) === 1;
  }

  /** True while this claim of a job is the current one and the job has not ended. */
  async isCurrent({ id, fence }: FencedJob): Promise<boolean> {
    const [current, end] = await this.#redis.hmget(this.#keys.run(id), 'fence', 'end');
    return Number(current) === fence && end === null;
  }

  /** The end is in the ledger: the keys of the job expire soon. */
  async expire(id: string): Promise<void> {
    const { run, eventStream, preview } = this.#keys;
    const keys = [run(id), eventStream(id), preview(id)];
    await Promise.all(keys.map((key) => this.#redis.pexpire(key, ENDED_TTL_MS)));
  }

  /** States in the order of the ids; `undefined` for unknown jobs. */
  async read(ids: readonly string[]): Promise<readonly (RunState | undefined)[]> {
    const [all, positions] = await Promise.all([
      Promise.all(ids.map((id) => this.#redis.hgetall(this.#keys.run(id)))),
      this.positions(ids),
    ]);
    return all.map((fields, i) => stateOf(fields, positions[i] ?? null));
  }

  /** How many jobs will be taken before each of these; null for one that does not wait. */
  async positions(ids: readonly string[]): Promise<readonly (number | null)[]> {
    if (ids.length === 0) return [];
    const keys = this.#queueKeysOfAll();
    const found = await this.#scripts.positions(keys.length, ...keys, ...ids);
    return (found as number[]).map((position) => (position < 0 ? null : position));
  }

  async position(id: string): Promise<number | null> {
    return (await this.positions([id]))[0] ?? null;
  }

  async #claim(id: string, [nowMs, maxAttempts]: readonly [number, number | '']): Promise<Claim> {
    const keys = this.#queueKeysOf(id);
    const args = [id, nowMs, maxAttempts, this.#keys.queueChannel];
    return toClaim((await this.#scripts.claim(keys.length, ...keys, ...args)) as ClaimReply);
  }

  /** KEYS of the queue's scripts for one job. */
  #queueKeysOf(id: string): readonly string[] {
    return [this.#keys.run(id), ...this.#queueKeys()];
  }

  /** KEYS of the queue's scripts for any job: the first is the prefix of all runs. */
  #queueKeysOfAll(): readonly string[] {
    return [this.#keys.runPrefix, ...this.#queueKeys()];
  }

  #queueKeys(): readonly string[] {
    const { waiting, userTurns, turnCounter, heldJobs, tickets, waitingOf } = this.#keys;
    return [waiting, userTurns, turnCounter, heldJobs, tickets, waitingOf];
  }
}

type ClaimReply = readonly [string, ...unknown[]];

function toClaim([kind, first, second]: ClaimReply): Claim {
  if (kind === 'ended') return { kind, patch: JSON.parse(String(first)) as EndPatch };
  const fence = Number(first);
  if (kind === 'cancel') return { kind, fence };
  return { kind: kind === 'lost' ? 'lost' : 'run', fence, attempts: Number(second ?? 0) };
}

function statusEvent(status: JobStatus, position: number | null): string {
  return encodeEvent({ event: 'status', data: { status, queue_position: position } });
}
