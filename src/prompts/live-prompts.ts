import type { JsonObject } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';
import type { Channel } from '../sockets/channel.ts';
import type { NodeRun } from '../translate/progress-state.ts';
import { type LazyJson, createLazyJson, readValue, setValue, unload } from '../lib/lazy-json.ts';
import { type PendingReason, type WaitReason, isInOutbox } from './pending-reason.ts';
import { byCreation, byQueueOrder } from './queue-order.ts';

/** The part of a live prompt that is known when it is submitted, or read from its record. */
export type NewLivePrompt = Pick<
  LivePrompt,
  'key' | 'promptId' | 'number' | 'clientId' | 'createdAtMs' | 'graph' | 'extraData' | 'targets'
> & {
  /** The JSON of graph and extra data, where it exists already. */
  readonly graphJson?: string;
  readonly extraDataJson?: string;
  /** It was submitted through v2; its caller follows v2 events. */
  readonly isV2Job?: boolean;
};

/**
 * A prompt between its accepted `POST` and its history entry. A class, because of its accessors: in an
 * object literal they give each object its own hidden class. Members are assigned one by one: spreading
 * takes a hundred times as long.
 */
export class LivePrompt {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly lazy: { readonly graph: LazyJson<Graph>; readonly extraData: LazyJson<JsonObject> };
  targets: readonly string[];
  /** The process that accepted it has ended. */
  isResumed = false;
  readonly isV2Job: boolean;
  /** The caller's credential, if any, is in memory only. */
  caller: Caller;
  readonly channel: Channel;
  /** `null`: no v2 job is known, and there is no status either. */
  jobId: string | null = null;
  /** A terminal status: the job has ended, its history is being written. */
  status: JobStatus | undefined = undefined;
  /** The job has reported a node, a step, a preview or an output. */
  hasEvidence = false;
  /** Its nodes that have started; `null` before the first event. */
  nodeRuns: ReadonlyMap<string, NodeRun> | null = null;
  cancelRequested = false;
  /** Its client has been answered, by any process: its frames may reach sockets. */
  isReleased = false;
  /** Why it has not started; of no meaning later. Set by `LivePrompts` only. */
  waitReason: WaitReason = 'submitting';
  /** Nothing is done for it until its user calls. Set by `LivePrompts` only. */
  lacksCredential = false;
  startedAtMs: number | null = null;
  /** Its end is known; its history is being written, or just was. */
  isEnding = false;

  constructor(newPrompt: NewLivePrompt, connection: Pick<LivePrompt, 'caller' | 'channel'>) {
    this.key = newPrompt.key;
    this.promptId = newPrompt.promptId;
    this.number = newPrompt.number;
    this.clientId = newPrompt.clientId;
    this.createdAtMs = newPrompt.createdAtMs;
    this.lazy = {
      graph: createLazyJson(newPrompt.graph, newPrompt.graphJson),
      extraData: createLazyJson(newPrompt.extraData, newPrompt.extraDataJson),
    };
    this.targets = newPrompt.targets;
    this.isV2Job = newPrompt.isV2Job ?? false;
    this.caller = connection.caller;
    this.channel = connection.channel;
  }

  get graph(): Graph {
    return readValue(this.lazy.graph);
  }

  set graph(value: Graph) {
    setValue(this.lazy.graph, value);
  }

  get extraData(): JsonObject {
    return readValue(this.lazy.extraData);
  }
}

/** `waiting`: it has no job yet; `ending`: the job has ended, its history is being written. */
type LivePromptState = 'waiting' | 'queued' | 'running' | 'ending';

export type LivePrompts = ReturnType<typeof createLivePrompts>;

/** The prompts of one user. Finding one takes the same time however many there are. */
type UserPrompts = {
  readonly prompts: Set<LivePrompt>;
  readonly inOutbox: Set<LivePrompt>;
  readonly byId: Map<string, readonly LivePrompt[]>;
};

/** Number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;

/** Called when a prompt begins to wait, and each time its own reason changes. */
type OnPending = (prompt: LivePrompt, reason: PendingReason) => void;

/** All prompts that have not ended, by user: what `/queue` shows and `queue_remaining` counts. */
export function createLivePrompts({
  onPending,
}: { readonly onPending?: OnPending | undefined } = {}) {
  const users = new Map<string, UserPrompts>();
  const sizes = new Map<LivePrompt, number>();
  let bytes = 0;
  const all = (user: string): Iterable<LivePrompt> => users.get(user)?.prompts ?? [];
  /** In the order they run. */
  const list = (user: string): readonly LivePrompt[] => [...all(user)].toSorted(byQueueOrder);
  const setWaitReason = (prompt: LivePrompt, reason: WaitReason): void => {
    if (prompt.waitReason === reason) return;
    prompt.waitReason = reason;
    const userPrompts = users.get(prompt.caller.user);
    if (userPrompts?.prompts.has(prompt)) updateOutbox(userPrompts, prompt);
    onPending?.(prompt, reason);
  };
  return {
    add(prompt: LivePrompt): void {
      const { user } = prompt.caller;
      const userPrompts = users.get(user) ?? emptyUserPrompts();
      users.set(user, userPrompts);
      if (!userPrompts.prompts.has(prompt)) {
        sizes.set(prompt, sizeOf(prompt));
        bytes += sizeOf(prompt);
        onPending?.(prompt, prompt.waitReason);
      }
      userPrompts.prompts.add(prompt);
      updateOutbox(userPrompts, prompt);
      addToIndex(userPrompts, prompt, prompt.promptId);
    },
    /** Sets the v2 job of a prompt; `find` finds it by the job's id too. */
    setJobId(prompt: LivePrompt, jobId: string): void {
      prompt.jobId = jobId;
      setWaitReason(prompt, 'job_queued');
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts?.prompts.has(prompt)) addToIndex(userPrompts, prompt, jobId);
    },
    /** The job of the prompt is gone; it is going to get another one. */
    clearJobId(prompt: LivePrompt): void {
      const { jobId, promptId } = prompt;
      prompt.jobId = null;
      prompt.status = undefined;
      setWaitReason(prompt, 'job_lost');
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts && jobId !== null && jobId !== promptId)
        removeFromIndex(userPrompts, prompt, jobId);
    },
    remove(prompt: LivePrompt): void {
      const userPrompts = users.get(prompt.caller.user);
      if (!userPrompts?.prompts.delete(prompt)) return;
      bytes -= sizes.get(prompt) ?? 0;
      sizes.delete(prompt);
      userPrompts.inOutbox.delete(prompt);
      for (const id of idsOf(prompt)) removeFromIndex(userPrompts, prompt, id);
      if (userPrompts.prompts.size === 0) users.delete(prompt.caller.user);
    },
    has: (prompt: LivePrompt): boolean =>
      users.get(prompt.caller.user)?.prompts.has(prompt) ?? false,
    /** The prompt waits for this reason from now on. */
    setWaitReason,
    /** The prompt is not in the outbox any more: its submission is on its way. */
    removeFromOutbox(prompt: LivePrompt): void {
      if (isInOutbox(prompt)) setWaitReason(prompt, 'submitting');
    },
    /** The prompt waits for a call of its user, which brings the key. */
    awaitCredential(prompt: LivePrompt): void {
      prompt.lacksCredential = true;
      onPending?.(prompt, 'no_key');
    },
    /** A process that has the key looks after the prompt. */
    foundCredential(prompt: LivePrompt): void {
      prompt.lacksCredential = false;
    },
    list,
    /** True when another job of this user is ahead in the queue and still queued. */
    hasEarlierQueued(prompt: LivePrompt): boolean {
      for (const other of all(prompt.caller.user)) {
        if (other.status === 'queued' && byQueueOrder(other, prompt) < 0) return true;
      }
      return false;
    },
    count: (user: string): number => users.get(user)?.prompts.size ?? 0,
    /** Bytes of the graphs and extra data of all live prompts. */
    bytes: (): number => bytes,
    /** Unloads the graph of a prompt that is far back in the queue. */
    unloadIfFar({ caller, status, lazy }: LivePrompt): void {
      const count = users.get(caller.user)?.prompts.size ?? 0;
      if (status !== 'queued' || count <= LOADED_PROMPTS) return;
      unload(lazy.graph);
      unload(lazy.extraData);
    },
    /** The number of such prompts of all users in each state. */
    countByState(
      isCounted: (prompt: LivePrompt) => boolean = () => true,
    ): Readonly<Record<LivePromptState, number>> {
      const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
      for (const { prompts } of users.values())
        for (const prompt of prompts) if (isCounted(prompt)) counts[stateOf(prompt)]++;
      return counts;
    },
    // The newest one: v1 lets a client reuse an id while the first prompt is live. A prompt that
    // waited for its job is found by its own id and by the job's.
    find(user: string, id: string): LivePrompt | undefined {
      const matches = users.get(user)?.byId.get(id) ?? [];
      return matches.length < 2 ? matches[0] : matches.toSorted(byCreation).at(-1);
    },
    /** The prompts of this user that are in the outbox. */
    inOutbox: (user: string): ReadonlySet<LivePrompt> => users.get(user)?.inOutbox ?? NO_PROMPTS,
    /**
     * The prompts that an interrupt stops. It is not for one that has just ended, which `/queue` shows
     * until its history is written.
     */
    interruptible: (user: string): readonly LivePrompt[] =>
      shownAsRunning(list(user).filter(({ isEnding }) => !isEnding)),
  };
}

const NO_PROMPTS: ReadonlySet<LivePrompt> = new Set<LivePrompt>();

/** The prompts that `/queue` calls running: those that run, else the oldest that has a job. */
export function shownAsRunning(prompts: readonly LivePrompt[]): readonly LivePrompt[] {
  const withJob = prompts.filter((prompt) => prompt.status !== undefined && !hasEnded(prompt));
  const active = withJob.filter((prompt) => prompt.status !== 'queued');
  if (active.length > 0) return active;
  // One client shows nothing and another crashes when jobs are pending and none is running.
  return withJob.toSorted(byCreation).slice(0, 1);
}

/** 0 for a prompt whose JSON has not been written. */
function sizeOf({ lazy }: LivePrompt): number {
  return (lazy.graph.json?.length ?? 0) + (lazy.extraData.json?.length ?? 0);
}

function emptyUserPrompts(): UserPrompts {
  return { prompts: new Set(), inOutbox: new Set(), byId: new Map() };
}

function updateOutbox({ inOutbox }: UserPrompts, prompt: LivePrompt): void {
  if (isInOutbox(prompt)) inOutbox.add(prompt);
  else inOutbox.delete(prompt);
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

/** True when nothing of the prompt is left to run or to stop. */
export function hasEnded({ status }: Pick<LivePrompt, 'status'>): boolean {
  return status !== undefined && IS_TERMINAL[status];
}

function stateOf(prompt: LivePrompt): LivePromptState {
  if (prompt.status === undefined) return 'waiting';
  if (hasEnded(prompt)) return 'ending';
  return prompt.status === 'queued' ? 'queued' : 'running';
}
