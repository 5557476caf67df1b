import { MAX_ATTEMPTS } from '../jobs/job-lifecycle.ts';
import { type EndPatch, type RunState, stateOf } from './run-fields.ts';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import { encodeEvent } from './event-codec.ts';
import type { WriteResult } from '../jobs/job-run.ts';
import type { QueueKeys } from './redis-keys.ts';
import { type QueueScripts, defineQueueScripts } from './run-scripts.ts';

const PREVIEW_TTL_MS = 60_000;
/** How long subscribers can still read the end of a job. */
const ENDED_TTL_MS = 5 * 60_000;

/** How a worker continues with a claimed job. Writes under an older fence are stale. */
export type Claim =
  | { readonly kind: 'run' | 'cancel' | 'lost'; readonly fence: number; readonly attempts: number }
  | { readonly kind: 'ended'; readonly patch: EndPatch };

/** A claimed job and its fencing token; without one it was never claimed. */
export type FencedJob = { readonly id: string; readonly fence?: number };

/**
 * A message of a job: an event is stored in the stream under its number, with the fields of the run
 * that it changes; a preview is only published.
 */
export type PublishItem =
  | { readonly kind: 'e'; readonly n: number; readonly text: string; readonly fields: RunFields }
  | { readonly kind: 'p'; readonly bytes: Buffer; readonly isStored: boolean };

type RunFields = Readonly<Record<string, string>>;

type RunStateOptions = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  /** The name under which this process claims jobs: requests to cancel them are sent to it. */
  readonly worker: string;
};

/** The runs of unfinished jobs, shared by all processes; every change is one script. */
export class RunStateStore {
  readonly #redis: Redis;
  readonly #keys: QueueKeys;
  readonly #worker: string;
  readonly #scripts: QueueScripts;

  constructor({ redis, keys, worker }: RunStateOptions) {
    this.#redis = redis;
    this.#keys = keys;
    this.#worker = worker;
    this.#scripts = defineQueueScripts(redis, keys);
  }

  async claim(id: string, nowMs: number): Promise<Claim> {
    const claimed = await this.#scripts.claim(id, nowMs, MAX_ATTEMPTS, this.#worker);
    return toClaim(claimed as ClaimReply);
  }

  /** Claims a job only to end it, from any worker that may have it. */
  async seize(id: string): Promise<Claim> {
    return toClaim((await this.#scripts.claim(id, 0, '')) as ClaimReply);
  }

  /** Counts the attempt: the first node begins. Durable once this resolves. */
  async begin({ id, fence = 0 }: FencedJob): Promise<WriteResult> {
    return (await this.#scripts.begin(id, fence)) as WriteResult;
  }

  /** The worker that had this job under an earlier fence was slow, but did not crash. */
  async stillAlive({ id, fence = 0 }: FencedJob): Promise<void> {
    await this.#scripts.stillAlive(id, fence);
  }

  /** Publishes events and stores the fields they change. */
  async append({ id, fence = 0 }: FencedJob, items: readonly PublishItem[]): Promise<WriteResult> {
    const changed = items.map((item) => (item.kind === 'e' ? item.fields : {}));
    const pairs = Object.entries(Object.assign({}, ...changed) as RunFields);
    const args = items.flatMap((item): ScriptArgument[] =>
      item.kind === 'p' ? ['p', item.isStored ? 1 : 0, item.bytes] : ['e', item.n, item.text],
    );
    const head = [id, fence, PREVIEW_TTL_MS, pairs.length];
    return (await this.#scripts.append(...head, ...pairs.flat(), ...args)) as WriteResult;
  }

  /** Decides the end of a job; `ok` also when it was decided before. */
  async end(
    { id, fence = 0 }: FencedJob,
    patch: EndPatch & { readonly status: string },
  ): Promise<WriteResult> {
    const event = statusEvent(patch.status as JobStatus, null);
    const args = [id, fence, patch.status, JSON.stringify(patch), event];
    return (await this.#scripts.end(...args)) as WriteResult;
  }

  /** A worker returns a claimed job, whose attempt does not count if it is returned too. */
  async requeue({ id, fence = 0 }: FencedJob, attemptsReturned: 0 | 1): Promise<WriteResult> {
    const event = statusEvent('queued', 0);
    return (await this.#scripts.requeue(id, fence, event, attemptsReturned)) as WriteResult;
  }

  /** True while this claim of a job is the current one and the job has not ended. */
  async isCurrent({ id, fence = 0 }: FencedJob): Promise<boolean> {
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
    return (await Promise.all(ids.map((id) => this.#redis.hgetall(this.#keys.run(id))))).map(
      stateOf,
    );
  }
}

type ClaimReply = readonly [kind: Claim['kind'], ...unknown[]];

function toClaim([kind, first, attempts = 0]: ClaimReply): Claim {
  if (kind === 'ended') return { kind, patch: JSON.parse(String(first)) as EndPatch };
  return { kind, fence: Number(first), attempts: Number(attempts) };
}

function statusEvent(status: JobStatus, position: number | null): string {
  return encodeEvent({ event: 'status', data: { status, queue_position: position } });
}
