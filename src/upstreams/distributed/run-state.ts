import type { LiveJob } from '../jobs/live-job.ts';
import { MAX_ATTEMPTS } from '../jobs/recover-jobs.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { Redis } from '../../lib/redis.ts';
import { type Json, parseJson, stringifyJson } from '../../protocol/json.ts';
import type { JobStatus } from '../../protocol/v2.ts';
import { encodeEvent } from './event-codec.ts';
import type { QueueKeys } from './redis-keys.ts';
import { priorityOf, scoreOf } from './priority.ts';
import {
  APPEND,
  ASK_CANCEL,
  BEGIN,
  CLAIM,
  END,
  REQUEUE,
  STILL_ALIVE,
  runScript,
} from './run-scripts.ts';
import { TICKET_KEY } from './ticket-queue.ts';
import { DROP, ENQUEUE, POSITIONS, TAKE, WITHDRAW } from './queue-scripts.ts';

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

/** The changes that the end of a job makes to its row. */
export type EndPatch = Partial<Omit<JobRow, 'id' | 'user'>>;

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

/** The state of an unfinished job, which its row does not have. */
export type RunState = Partial<
  Pick<LiveJob, 'status' | 'startedAtMs' | 'progress' | 'outputs' | 'ui' | 'cachedNodes'>
> & {
  readonly position: number | null;
  readonly isCancelAsked: boolean;
  readonly end: EndPatch | undefined;
};

/** The unfinished jobs, shared by all processes; every change is one script. */
export type RunStateStore = ReturnType<typeof createRunStateStore>;

export function createRunStateStore({
  redis,
  keys,
}: {
  readonly redis: Redis;
  readonly keys: QueueKeys;
}) {
  const run = (script: string, id: string, more: string[], args: (string | number | Buffer)[]) =>
    runScript(redis, script, { keys: [keys.run(id), ...more], args });
  const {
    waiting,
    userTurns: turns,
    turnCounter: turn,
    heldJobs: held,
    ticketQueue,
    waitingOf,
  } = keys;
  const queueKeys = [waiting, turns, turn, held, ticketQueue, waitingOf];
  const places = async (ids: readonly string[]): Promise<readonly (number | null)[]> => {
    if (ids.length === 0) return [];
    const found = await runScript(redis, POSITIONS, {
      keys: [keys.runState, ...queueKeys],
      args: ids,
    });
    return (found as number[]).map((place) => (place < 0 ? null : place));
  };

  return {
    /** Adds a job to the queue; does nothing for one that waits already or that a worker has. */
    async enqueue({ id, user, order }: Pick<JobRow, 'id' | 'user' | 'order'>): Promise<void> {
      const { entryCounter: entered, highestOrder: highest, pubsub, bullPrefix: library } = keys;
      const args = [id, priorityOf(order), order, pubsub, user, `${library}${TICKET_KEY}`];
      await run(ENQUEUE, id, [...queueKeys, entered, highest], args);
    },
    /**
     * The job a worker may run with this ticket; `undefined` when none waits. The worker has it
     * until `end`, `requeue` or `drop`.
     */
    async take(ticket: string): Promise<string | undefined> {
      const keysOfAll = [keys.runState, ...queueKeys];
      const id = await runScript(redis, TAKE, { keys: keysOfAll, args: [ticket] });
      return (id as string | null) ?? undefined;
    },
    /** Takes a waiting job out of the queue; false when it does not wait. */
    withdraw: async (id: string): Promise<boolean> =>
      (await run(WITHDRAW, id, queueKeys, [id])) === 1,
    /** Removes a job that needs no more work from the queue. */
    async drop(id: string, ticket = ''): Promise<void> {
      await run(DROP, id, queueKeys, [id, ticket]);
    },
    /** The ticket with which a worker took a job. */
    ticketOf: async (id: string): Promise<string | undefined> =>
      (await redis.hget(keys.run(id), 'ticket')) ?? undefined,
    /** The job that a worker took with a ticket. */
    takenBy: async (ticket: string): Promise<string | undefined> =>
      (await redis.hget(ticketQueue, ticket)) ?? undefined,
    /** Jobs that workers have. */
    held: (): Promise<string[]> => redis.hkeys(held),
    waiting: () => redis.zcard(waiting),
    waitingOf: (user: string) => redis.zcard(`${waitingOf}${user}`),
    async nextOrder(): Promise<number> {
      const highest = await redis.get(keys.highestOrder);
      return highest === null ? 0 : Math.floor(Number(highest)) + 1;
    },
    async claim(id: string, nowMs: number): Promise<Claim> {
      const args = [id, nowMs, MAX_ATTEMPTS, keys.pubsub];
      return toClaim((await run(CLAIM, id, queueKeys, args)) as [string, ...unknown[]]);
    },
    /** Claims a job only to end it, from any worker that may have it. */
    async seize(id: string): Promise<Claim> {
      const args = [id, 0, '', keys.pubsub];
      return toClaim((await run(CLAIM, id, queueKeys, args)) as [string, ...unknown[]]);
    },
    /** Counts the attempt: the first node begins. Durable once this resolves. */
    begin: async ({ id, fence }: FencedJob): Promise<WriteResult> =>
      (await run(BEGIN, id, [], [fence])) as WriteResult,
    /** The worker that had this job under an earlier fence was slow, but did not crash. */
    async stillAlive({ id, fence }: FencedJob): Promise<void> {
      await run(STILL_ALIVE, id, [], [fence]);
    },
    async append(
      { id, fence }: FencedJob,
      items: readonly PublishItem[],
      fields: Readonly<Record<string, string>>,
    ): Promise<WriteResult> {
      const pairs = Object.entries(fields);
      const head = [fence, keys.eventChannel(id), MAX_ENTRIES, PREVIEW_TTL_MS, pairs.length];
      const args = items.flatMap((item): (string | number | Buffer)[] =>
        item.kind === 'p' ? ['p', item.isStored ? 1 : 0, item.bytes] : ['e', item.n, item.text],
      );
      const more = [keys.eventStream(id), keys.preview(id)];
      return (await run(APPEND, id, more, [...head, ...pairs.flat(), ...args])) as WriteResult;
    },
    async end(
      { id, fence }: FencedJob,
      patch: EndPatch & { readonly status: string },
    ): Promise<WriteResult> {
      const { status } = patch;
      const statusEvent = statusText(status as JobStatus, null);
      const args = [
        fence,
        keys.eventChannel(id),
        id,
        status,
        JSON.stringify(patch),
        statusEvent,
        keys.pubsub,
      ];
      return (await run(END, id, [...queueKeys, keys.eventStream(id)], args)) as WriteResult;
    },
    async requeue(
      { id, fence }: FencedJob,
      { order, attemptsReturned }: RequeueOptions,
    ): Promise<WriteResult> {
      const score = scoreOf(priorityOf(order));
      const statusEvent = statusText('queued', 0);
      const args = [
        fence,
        keys.eventChannel(id),
        id,
        score,
        statusEvent,
        keys.pubsub,
        attemptsReturned,
      ];
      return (await run(REQUEUE, id, [...queueKeys, keys.eventStream(id)], args)) as WriteResult;
    },
    askCancel: async (id: string): Promise<boolean> =>
      (await run(ASK_CANCEL, id, [], [keys.pubsub, id])) === 'ok',
    isCancelAsked: async (id: string): Promise<boolean> =>
      (await redis.hexists(keys.run(id), 'cancel')) === 1,
    isCurrent: async ({ id, fence }: FencedJob): Promise<boolean> => {
      const [current, end] = await redis.hmget(keys.run(id), 'fence', 'end');
      return Number(current) === fence && end === null;
    },
    /** The end is in the ledger: the keys of the job expire soon. */
    async expire(id: string): Promise<void> {
      const all = [keys.run(id), keys.eventStream(id), keys.preview(id)];
      await Promise.all(all.map((key) => redis.pexpire(key, ENDED_TTL_MS)));
    },
    /** States in the order of the ids; `undefined` for unknown jobs. */
    async read(ids: readonly string[]): Promise<readonly (RunState | undefined)[]> {
      const [all, positions] = await Promise.all([
        Promise.all(ids.map((id) => redis.hgetall(keys.run(id)))),
        places(ids),
      ]);
      return all.map((fields, i) => stateOf(fields, positions[i] ?? null));
    },
    /** How many jobs will be taken before each of these; null for one that does not wait. */
    places,
    position: async (id: string): Promise<number | null> => (await places([id]))[0] ?? null,
  };
}

function stateOf(
  fields: { readonly [name: string]: string },
  position: number | null,
): RunState | undefined {
  if (fields['fence'] === undefined) return undefined;
  const { status, startedAtMs, progress, outputs, ui, cached, cancel, end } = fields;
  const isStopping = cancel !== undefined && status === 'running';
  return {
    position,
    isCancelAsked: cancel !== undefined,
    end: end === undefined ? undefined : (JSON.parse(end) as EndPatch),
    status: isStopping ? 'canceling' : ((status ?? 'queued') as JobStatus),
    startedAtMs: startedAtMs === undefined ? null : Number(startedAtMs),
    ...(progress !== undefined && { progress: read(progress) }),
    ...(outputs !== undefined && { outputs: read(outputs) }),
    ...(ui !== undefined && { ui: read(ui) }),
    ...(cached !== undefined && { cachedNodes: read(cached) }),
  } as RunState;
}

/** The hash fields of a job that its events change. */
export function fieldsOf(
  job: Pick<LiveJob, 'status' | 'progress' | 'outputs' | 'ui' | 'cachedNodes'>,
  changed: ReadonlySet<string>,
): Readonly<Record<string, string>> {
  const write = (value: unknown): string => stringifyJson(value as Json);
  return {
    ...(changed.has('status') && { status: job.status, cached: write(job.cachedNodes) }),
    ...(changed.has('progress') && { progress: write(job.progress) }),
    ...(changed.has('output') && { outputs: write(job.outputs) }),
    ...(changed.has('x_node') && { ui: write(job.ui) }),
  };
}

function toClaim([kind, first, second]: readonly [string, ...unknown[]]): Claim {
  if (kind === 'ended') return { kind, patch: JSON.parse(String(first)) as EndPatch };
  const fence = Number(first);
  if (kind === 'cancel') return { kind, fence };
  return { kind: kind === 'lost' ? 'lost' : 'run', fence, attempts: Number(second ?? 0) };
}

function statusText(status: JobStatus, position: number | null): string {
  return encodeEvent({ event: 'status', data: { status, queue_position: position } });
}

function read(text: string): unknown {
  return parseJson(text);
}
