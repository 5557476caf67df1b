import type { JsonObject } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';
import type { Channel } from '../sockets/channel.ts';
import type { LazyJson } from '../lib/lazy-json.ts';
import { byCreation, byQueueOrder } from './queue-order.ts';

/** What is known of a prompt from its `POST` on. */
export type PromptDraft = {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly graph: Graph;
  /** The texts of the two, where they were written already. */
  readonly graphJson?: string;
  readonly extraData: JsonObject;
  readonly extraDataJson?: string;
  readonly targets: readonly string[];
  /** It was accepted by a process that is gone. */
  readonly isResumed: boolean;
  /** It was submitted through v2, whose callers have its own events. */
  readonly isV2Job?: boolean;
};

type ReplacedMembers =
  | 'graph'
  | 'graphJson'
  | 'extraData'
  | 'extraDataJson'
  | 'targets'
  | 'isResumed';

/** A prompt between its accepted `POST` and its history entry. */
export type LivePrompt = Omit<PromptDraft, ReplacedMembers> & {
  readonly channel: Channel;
  /** Its credential, if any, is in memory only. */
  caller: Caller;
  readonly lazy: { readonly graph: LazyJson<Graph>; readonly extraData: LazyJson<JsonObject> };
  graph: Graph;
  readonly extraData: JsonObject;
  targets: readonly string[];
  /** `null`: no v2 job is known, and then there is no status either. */
  jobId: string | null;
  /** A terminal one: the job is over, its history is still being written. */
  status: JobStatus | undefined;
  /** The job has shown a node, a step, a preview or an output. */
  hasEvidence: boolean;
  cancelRequested: boolean;
  isResumed: boolean;
  /** Its client has been answered. */
  isReleased: boolean;
  /** It is in the outbox; the board's to say. */
  isInOutbox: boolean;
  startedAtMs: number | null;
};

/** `waiting`: no job of it is known yet; `ending`: the job is over, its history is being written. */
type PromptState = 'waiting' | 'queued' | 'running' | 'ending';

/** All live prompts, by user: what `/queue` shows and `queue_remaining` counts. */
export type LivePrompts = {
  add(prompt: LivePrompt): void;
  /** Its v2 job is known from now on; it answers to the job's id too. */
  setJobId(prompt: LivePrompt, jobId: string): void;
  /** Its job is gone, and it is to have another one. */
  clearJobId(prompt: LivePrompt): void;
  remove(prompt: LivePrompt): void;
  has(prompt: LivePrompt): boolean;
  /** It is in the outbox from now on. */
  markWaiting(prompt: LivePrompt): void;
  /** It is not, or not any more. */
  clearWaiting(prompt: LivePrompt): void;
  /** In the order they will run. */
  list(user: string): readonly LivePrompt[];
  /** Whether a job of the same user's that runs before this one has not been heard to start. */
  hasEarlierQueued(prompt: LivePrompt): boolean;
  readonly count: (user: string) => number;
  /** Bytes of what the clients of all live prompts sent. */
  readonly bytes: () => number;
  /** How many of all users' are in which state. */
  countByState(): Readonly<Record<PromptState, number>>;
  find(user: string, promptId: string): LivePrompt | undefined;
  /** Those in the outbox. */
  waiting(user: string): ReadonlySet<LivePrompt>;
  /** What `/queue` calls running: what runs, else the oldest that has a job. */
  running(user: string): readonly LivePrompt[];
};

/** The prompts of one user; looking one up must not cost more the more there are. */
type UserPrompts = {
  readonly prompts: Set<LivePrompt>;
  readonly waiting: Set<LivePrompt>;
  readonly byId: Map<string, readonly LivePrompt[]>;
};

export function createLivePrompts(): LivePrompts {
  const users = new Map<string, UserPrompts>();
  const sizes = new Map<LivePrompt, number>();
  let bytes = 0;
  const all = (user: string): Iterable<LivePrompt> => users.get(user)?.prompts ?? [];
  const list = (user: string) => [...all(user)].toSorted(byQueueOrder);
  return {
    add(prompt) {
      const { user } = prompt.caller;
      const userPrompts = users.get(user) ?? emptyUserPrompts();
      users.set(user, userPrompts);
      if (!userPrompts.prompts.has(prompt)) {
        sizes.set(prompt, sizeOf(prompt));
        bytes += sizeOf(prompt);
      }
      userPrompts.prompts.add(prompt);
      if (prompt.isInOutbox) userPrompts.waiting.add(prompt);
      addToIndex(userPrompts, prompt, prompt.promptId);
    },
    setJobId(prompt, jobId) {
      prompt.jobId = jobId;
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts?.prompts.has(prompt)) addToIndex(userPrompts, prompt, jobId);
    },
    clearJobId(prompt) {
      const { jobId, promptId } = prompt;
      prompt.jobId = null;
      prompt.status = undefined;
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts && jobId !== null && jobId !== promptId)
        removeFromIndex(userPrompts, prompt, jobId);
    },
    remove(prompt) {
      const userPrompts = users.get(prompt.caller.user);
      if (!userPrompts?.prompts.delete(prompt)) return;
      bytes -= sizes.get(prompt) ?? 0;
      sizes.delete(prompt);
      userPrompts.waiting.delete(prompt);
      for (const id of idsOf(prompt)) removeFromIndex(userPrompts, prompt, id);
      if (userPrompts.prompts.size === 0) users.delete(prompt.caller.user);
    },
    has: (prompt) => users.get(prompt.caller.user)?.prompts.has(prompt) ?? false,
    markWaiting(prompt) {
      prompt.isInOutbox = true;
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts?.prompts.has(prompt)) userPrompts.waiting.add(prompt);
    },
    clearWaiting(prompt) {
      prompt.isInOutbox = false;
      users.get(prompt.caller.user)?.waiting.delete(prompt);
    },
    list,
    hasEarlierQueued(prompt) {
      for (const other of all(prompt.caller.user)) {
        if (other.status === 'queued' && byQueueOrder(other, prompt) < 0) return true;
      }
      return false;
    },
    count: (user) => users.get(user)?.prompts.size ?? 0,
    bytes: () => bytes,
    countByState() {
      const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
      for (const { prompts } of users.values())
        for (const prompt of prompts) counts[stateOf(prompt)]++;
      return counts;
    },
    // The newest one: v1 lets a client use an id again while the first is live. A prompt that
    // waited for its job answers to its own id and to the job's.
    find(user, id) {
      const matches = users.get(user)?.byId.get(id) ?? [];
      return matches.length < 2 ? matches[0] : matches.toSorted(byCreation).at(-1);
    },
    waiting: (user) => users.get(user)?.waiting ?? NO_PROMPTS,
    running(user) {
      const withJob = list(user).filter(
        (prompt) => prompt.status !== undefined && !hasEnded(prompt),
      );
      const active = withJob.filter((prompt) => prompt.status !== 'queued');
      if (active.length > 0) return active;
      // One client shows nothing, another crashes, when jobs wait and none of them is running.
      return withJob.toSorted(byCreation).slice(0, 1);
    },
  };
}

const NO_PROMPTS: ReadonlySet<LivePrompt> = new Set<LivePrompt>();

/** Of a prompt whose texts have not been written it is unknown. */
function sizeOf({ lazy }: LivePrompt): number {
  return (lazy.graph.json?.length ?? 0) + (lazy.extraData.json?.length ?? 0);
}

function emptyUserPrompts(): UserPrompts {
  return { prompts: new Set(), waiting: new Set(), byId: new Map() };
}

function idsOf({ promptId, jobId }: LivePrompt): readonly string[] {
  return jobId === null || jobId === promptId ? [promptId] : [promptId, jobId];
}

function addToIndex({ byId }: UserPrompts, prompt: LivePrompt, id: string): void {
  const matches = byId.get(id) ?? [];
  if (!matches.includes(prompt)) byId.set(id, [...matches, prompt]);
}

function removeFromIndex({ byId }: UserPrompts, prompt: LivePrompt, id: string): void {
  const left = (byId.get(id) ?? []).filter((other) => other !== prompt);
  if (left.length > 0) byId.set(id, left);
  else byId.delete(id);
}

/** Whether it can be taken out of the queue: nothing of it runs, as far as is known. */
export function isNotStarted({ status }: Pick<LivePrompt, 'status'>): boolean {
  return status === undefined || status === 'queued';
}

/** Whether nothing of it is left to run or to stop. */
export function hasEnded({ status }: Pick<LivePrompt, 'status'>): boolean {
  return status !== undefined && IS_TERMINAL[status];
}

function stateOf(prompt: LivePrompt): PromptState {
  if (prompt.status === undefined) return 'waiting';
  if (hasEnded(prompt)) return 'ending';
  return prompt.status === 'queued' ? 'queued' : 'running';
}
