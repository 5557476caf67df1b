import { MAX_ATTEMPTS } from '../jobs/job-lifecycle.ts';
import { type EndPatch, type RunState, encodeEvent, stateOf } from './run-codec.ts';
import type { ScriptArgument } from '../../redis/redis-scripts.ts';
import type { Redis } from '../../redis/redis.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import type { WriteResult } from '../jobs/job-run.ts';
import type { QueueKeys } from './redis-keys.ts';
import { defineQueueScripts } from './queue-scripts.ts';

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

/** The states of runs, which all processes share. */
export interface RunStates {
  readonly claim: (id: string, nowMs: number) => Promise<Claim>;
  /** Claims a job only to end it. A worker that has it can then write no more. */
  readonly seize: (id: string) => Promise<Claim>;
  /** Counts an attempt. Call it before the first node begins: the count is durable when this resolves. */
  readonly begin: (job: FencedJob) => Promise<WriteResult>;
  /** Takes back the attempt of a worker that had this job under an earlier fence and did not crash. */
  readonly stillAlive: (fencedJob: FencedJob) => Promise<void>;
  /** Stores and publishes events, and stores the fields that they change. */
  append(job: FencedJob, items: readonly PublishItem[]): Promise<WriteResult>;
  /** Decides the end of a job; `ok` also when an end was decided before. */
  readonly end: (
    job: FencedJob,
    patch: EndPatch & { readonly status: string },
  ) => Promise<WriteResult>;
  /** Returns a claimed job to the queue. `attemptsReturned`: 1 if the attempt is not counted. */
  readonly requeue: (job: FencedJob, attemptsReturned: 0 | 1) => Promise<WriteResult>;
  /** True while this claim of a job is the current one and the job has not ended. */
  isCurrent(fencedJob: FencedJob): Promise<boolean>;
  /** Call when the end is in the ledger: the keys of the job expire after five minutes. */
  expire(id: string): Promise<void>;
  /** The states of runs, in the order of the ids; `undefined` for unknown jobs. */
  read(ids: readonly string[]): Promise<readonly (RunState | undefined)[]>;
}

/**
 * Creates the functions for the states of runs in Redis; each change is one script. `worker`: the name under which
 * this process claims jobs, and to which requests to cancel them are sent.
 */
export function createRunStates(redis: Redis, keys: QueueKeys, worker: string): RunStates {
  const scripts = defineQueueScripts(redis, keys);
  const write = (
    act: 'begin' | 'append' | 'end' | 'requeue',
    { id, fence = 0 }: FencedJob,
    ...args: ScriptArgument[]
  ): Promise<WriteResult> => scripts[act](id, fence, ...args);
  return {
    claim: async (id, nowMs) => toClaim(await scripts.claim(id, nowMs, MAX_ATTEMPTS, worker)),
    seize: async (id) => toClaim(await scripts.claim(id, 0, '')),
    begin: (job) => write('begin', job),
    stillAlive: ({ id, fence = 0 }) => scripts.stillAlive(id, fence),
    append(job, items) {
      const changed = items.map((item) => (item.kind === 'e' ? item.fields : {}));
      const pairs = Object.entries(Object.assign({}, ...changed) as RunFields);
      const args = items.flatMap((item): ScriptArgument[] =>
        item.kind === 'p' ? ['p', 0, item.bytes] : ['e', item.n, item.text],
      );
      return write('append', job, pairs.length, ...pairs.flat(), ...args);
    },
    end: (job, patch) =>
      write('end', job, patch.status, JSON.stringify(patch), statusEvent(patch.status, null)),
    requeue: (job, attemptsReturned) =>
      write('requeue', job, statusEvent('queued', 0), attemptsReturned),
    async isCurrent({ id, fence = 0 }) {
      const [current, end] = await redis.hmget(keys.run(id), 'fence', 'end');
      return Number(current) === fence && end === null;
    },
    async expire(id) {
      const all = [keys.run(id), keys.eventStream(id)];
      await Promise.all(all.map((key) => redis.pexpire(key, ENDED_TTL_MS)));
    },
    async read(ids) {
      return (await Promise.all(ids.map((id) => redis.hgetall(keys.run(id))))).map(stateOf);
    },
  };
}

function toClaim([kind, first, attempts = 0]: [Claim['kind'], ...unknown[]]): Claim {
  if (kind === 'ended') return { kind, patch: JSON.parse(String(first)) as EndPatch };
  return { kind, fence: Number(first), attempts: Number(attempts) };
}

function statusEvent(status: string, position: number | null): string {
  const data = { status: status as JobStatus, queue_position: position };
  return encodeEvent({ event: 'status', data });
}
