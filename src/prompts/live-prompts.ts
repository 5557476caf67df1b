import type { JsonObject } from '../protocol/json.ts';
import type { Caller } from '../protocol/job-api.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';
import type { Channel } from '../sockets/channel.ts';
import type { NodeRun } from '../translate/progress/progress-state.ts';
import { type LazyJson, createLazyJson, readValue, setValue, unload } from '../lib/lazy-json.ts';
import { type PendingReason, type WaitReason, isInOutbox } from './pending-reason.ts';
import { byCreation, byQueueOrder } from './queue-order.ts';

/**
 * The members of a live prompt that are known when it is submitted, or are read from its record.
 */
export type NewLivePrompt = Pick<
  LivePrompt,
  'key' | 'promptId' | 'number' | 'clientId' | 'createdAtMs' | 'graph' | 'extraData' | 'targets'
> & {
  /** The JSON of the graph and the extra data, where it exists already. */
  readonly graphJson?: string;
  readonly extraDataJson?: string;
  /** True when the job was submitted through v2: its caller follows v2 events. */
  readonly isV2Job?: boolean;
};

/**
 * A prompt between its accepted `POST` and its history entry. A class, because of its accessors: in
 * an object literal they give each object a hidden class of its own. The members are assigned one
 * by one, since spreading takes a hundred times as long.
 */
export class LivePrompt {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly lazy: { readonly graph: LazyJson<Graph>; readonly extraData: LazyJson<JsonObject> };
  targets: readonly string[];
  /** True when the process that accepted the prompt has ended. */
  isTakenOver = false;
  readonly isV2Job: boolean;
  /** The credential of the caller, if there is one, is in memory only. */
  caller: Caller;
  readonly channel: Channel;
  /** `null`: no v2 job is known, and `status` is `undefined`. */
  jobId: string | null = null;
  /** A terminal status means that the job has ended and its history is being written. */
  status: JobStatus | undefined = undefined;
  /** True when the job has reported a node, a step, a preview or an output. */
  hasEvidence = false;
  /** The nodes of the job that have started; `null` before the first event. */
  nodeRuns: ReadonlyMap<string, NodeRun> | null = null;
  cancelRequested = false;
  /** True when a process has answered the client: frames of the prompt may reach sockets. */
  isReleased = false;
  /**
   * Why the prompt has not started; without meaning after the start. Only `LivePrompts` sets it.
   */
  waitReason: WaitReason = 'submitting';
  /**
   * True while the prompt waits for a call of its user, which brings the key. Only `LivePrompts`
   * sets it.
   */
  lacksCredential = false;
  startedAtMs: number | null = null;
  /** True when the end is known: the history is being written, or was written just now. */
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

/**
 * `waiting`: the prompt has no job yet. `ending`: the job has ended, its history is being written.
 */
type LivePromptState = 'waiting' | 'queued' | 'running' | 'ending';

export type LivePrompts = ReturnType<typeof createLivePrompts>;

/** The prompts of one user. The time to find a prompt does not depend on their number. */
type UserPrompts = {
  readonly prompts: Set<LivePrompt>;
  readonly inOutbox: Set<LivePrompt>;
  readonly byId: Map<string, readonly LivePrompt[]>;
};

/** The number of a user's prompts whose graphs stay in memory. */
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
  /** Returns the prompts of a user in the order they run. */
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
    /** Sets the v2 job of a prompt. `find` then finds the prompt by the id of the job, too. */
    setJobId(prompt: LivePrompt, jobId: string): void {
      prompt.jobId = jobId;
      setWaitReason(prompt, 'job_queued');
      const userPrompts = users.get(prompt.caller.user);
      if (userPrompts?.prompts.has(prompt)) addToIndex(userPrompts, prompt, jobId);
    },
    /**
     * Removes the job from a prompt: the job is gone, and the prompt is going to get another one.
     */
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
    /** Sets the reason why the prompt waits from now on. */
    setWaitReason,
    /** Takes the prompt out of the outbox: its submission is being sent. */
    removeFromOutbox(prompt: LivePrompt): void {
      if (isInOutbox(prompt)) setWaitReason(prompt, 'submitting');
    },
    /** Marks that the prompt waits for a call of its user, which brings the key. */
    awaitCredential(prompt: LivePrompt): void {
      prompt.lacksCredential = true;
      onPending?.(prompt, 'no_key');
    },
    /** Marks that a process which has the key leads the prompt. */
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
    /** Counts the prompts of all users in each of these states. */
    countByState(
      isCounted: (prompt: LivePrompt) => boolean = () => true,
    ): Readonly<Record<LivePromptState, number>> {
      const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
      for (const { prompts } of users.values())
        for (const prompt of prompts) if (isCounted(prompt)) counts[stateOf(prompt)]++;
      return counts;
    },
    // The newest prompt wins: v1 lets a client reuse an id while the first prompt is live. A prompt
    // that waited for its job is found by its own id and by the id of the job.
    find(user: string, id: string): LivePrompt | undefined {
      const matches = users.get(user)?.byId.get(id) ?? [];
      return matches.length < 2 ? matches[0] : matches.toSorted(byCreation).at(-1);
    },
    /** Returns the prompts of this user that are in the outbox. */
    inOutbox: (user: string): ReadonlySet<LivePrompt> => users.get(user)?.inOutbox ?? NO_PROMPTS,
    /**
     * Returns the prompts that an interrupt stops. A prompt that has just ended is left out, though
     * `/queue` shows it until its history is written.
     */
    interruptible: (user: string): readonly LivePrompt[] =>
      shownAsRunning(list(user).filter(({ isEnding }) => !isEnding)),
  };
}

const NO_PROMPTS: ReadonlySet<LivePrompt> = new Set<LivePrompt>();

/** Returns the prompts that `/queue` calls running: those that run, else the oldest with a job. */
export function shownAsRunning(prompts: readonly LivePrompt[]): readonly LivePrompt[] {
  const withJob = prompts.filter((prompt) => prompt.status !== undefined && !hasEnded(prompt));
  const active = withJob.filter((prompt) => prompt.status !== 'queued');
  if (active.length > 0) return active;
  // When jobs are pending and none is running, one client shows nothing and another one crashes.
  return withJob.toSorted(byCreation).slice(0, 1);
}

/** Returns the bytes of the JSON; 0 when it has not been written. */
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
