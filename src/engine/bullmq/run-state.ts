import { MAX_ATTEMPTS } from '../jobs/job-lifecycle.ts';
import { type EndPatch, type RunState, stateOf } from './run-codec.ts';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import { stringifyJson } from '../../protocol/json.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import type { WriteResult } from '../jobs/job-run.ts';
import type { QueueKeys } from './redis-keys.ts';
import { defineQueueScripts, type QueueScripts } from './queue-scripts.ts';

/** How long subscribers can read the end of a job. */
const ENDED_TTL_MS = 5 * 60_000;

/**
 * The result of a claim. `run`: run the job; `cancel`: it is to be cancelled; `lost`: too many workers died running
 * it; `ended`: its end is decided and must be recorded. Writes under an older fence are stale.
 */
export type Claim =
  | { readonly kind: 'run' | 'cancel' | 'lost'; readonly fence: number; readonly attempts: number }
  | { readonly kind: 'ended'; readonly patch: EndPatch };

/** A job and the fence of its claim; without a fence it was never claimed. */
type FencedJob = { readonly id: string; readonly fence?: number };

/**
 * A message of a job. `e`: an event, which is stored in the stream under its number, and the hash fields that it
 * changes. `p`: a preview, which is only published.
 */
export type PublishItem =
  | { readonly kind: 'e'; readonly n: number; readonly text: string; readonly fields: RunFields }
  | { readonly kind: 'p'; readonly bytes: Buffer };

type RunFields = Readonly<Record<string, string>>;

/** The states of runs in Redis, which all processes share; each change is one script. */
export class RunStates {
  readonly #scripts: QueueScripts;
  readonly #redis: Redis;
  readonly #keys: QueueKeys;
  readonly #worker: string;

  /**
   * `worker`: the name under which this process claims jobs, and to which requests to cancel them
   * are sent.
   */
  constructor(redis: Redis, keys: QueueKeys, worker: string) {
    this.#scripts = defineQueueScripts(redis, keys);
    this.#redis = redis;
    this.#keys = keys;
    this.#worker = worker;
  }

  async claim(id: string, nowMs: number): Promise<Claim> {
    return toClaim(await this.#scripts.claim(id, nowMs, MAX_ATTEMPTS, this.#worker));
  }

  /** Claims a job only to end it. A worker that has it can then write no more. */
  async seize(id: string): Promise<Claim> {
    return toClaim(await this.#scripts.claim(id, 0, ''));
  }

  /** Counts an attempt. Call it before the first node begins: the count is durable when this resolves. */
  begin(job: FencedJob): Promise<WriteResult> {
    return this.#write('begin', job);
  }

  /** Takes back the attempt of a worker that had this job under an earlier fence and did not crash. */
  stillAlive({ id, fence = 0 }: FencedJob): Promise<void> {
    return this.#scripts.stillAlive(id, fence);
  }

  /** Stores and publishes events, and stores the fields that they change. */
  append(job: FencedJob, items: readonly PublishItem[]): Promise<WriteResult> {
    const changed = items.map((item) => (item.kind === 'e' ? item.fields : {}));
    const pairs = Object.entries(Object.assign({}, ...changed) as RunFields);
    const args = items.flatMap((item): ScriptArgument[] =>
      item.kind === 'p' ? ['p', 0, item.bytes] : ['e', item.n, item.text],
    );
    return this.#write('append', job, pairs.length, ...pairs.flat(), ...args);
  }

  /** Decides the end of a job; `ok` also when an end was decided before. */
  end(job: FencedJob, patch: EndPatch & { readonly status: string }): Promise<WriteResult> {
    const event = statusEvent(patch.status, null);
    return this.#write('end', job, patch.status, JSON.stringify(patch), event);
  }

  /** Returns a claimed job to the queue. `attemptsReturned`: 1 if the attempt is not counted. */
  requeue(job: FencedJob, attemptsReturned: 0 | 1): Promise<WriteResult> {
    return this.#write('requeue', job, statusEvent('queued', 0), attemptsReturned);
  }

  /** True while this claim of a job is the current one and the job has not ended. */
  async isCurrent({ id, fence = 0 }: FencedJob): Promise<boolean> {
    const [current, end] = await this.#redis.hmget(this.#keys.run(id), 'fence', 'end');
    return Number(current) === fence && end === null;
  }

  /** Call when the end is in the ledger: the keys of the job expire after five minutes. */
  async expire(id: string): Promise<void> {
    const all = [this.#keys.run(id), this.#keys.eventStream(id)];
    await Promise.all(all.map((key) => this.#redis.pexpire(key, ENDED_TTL_MS)));
  }

  /** The states of runs, in the order of the ids; `undefined` for unknown jobs. */
  async read(ids: readonly string[]): Promise<readonly (RunState | undefined)[]> {
    const all = await Promise.all(ids.map((id) => this.#redis.hgetall(this.#keys.run(id))));
    return all.map(stateOf);
  }

  #write(
    act: 'begin' | 'append' | 'end' | 'requeue',
    { id, fence = 0 }: FencedJob,
    ...args: ScriptArgument[]
  ): Promise<WriteResult> {
    return this.#scripts[act](id, fence, ...args);
  }
}

function toClaim([kind, first, attempts = 0]: [Claim['kind'], ...unknown[]]): Claim {
  if (kind === 'ended') return { kind, patch: JSON.parse(String(first)) as EndPatch };
  return { kind, fence: Number(first), attempts: Number(attempts) };
}

function statusEvent(status: string, position: number | null): string {
  const data = { status: status as JobStatus, queue_position: position };
  return stringifyJson({ event: 'status', data });
}
