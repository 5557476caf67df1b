import { IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';
import { unload } from '../lib/lazy-json.ts';
import type { LivePrompt } from './live-prompt.ts';
import { type PendingReason, type WaitReason, isInOutbox } from './pending-reason.ts';
import { byCreation, byQueueOrder } from './queue-order.ts';

/**
 * `waiting`: the prompt has no job yet. `ending`: the job has ended, its history is being written.
 */
type LivePromptState = 'waiting' | 'queued' | 'running' | 'ending';

/** The prompts of one user. The time to find a prompt does not depend on their number. */
type UserPrompts = {
  readonly prompts: Set<LivePrompt>;
  readonly byId: Map<string, readonly LivePrompt[]>;
};

/** The number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;

/** Called when a prompt begins to wait, and each time its own reason changes. */
type OnPending = (prompt: LivePrompt, reason: PendingReason) => void;

/** All prompts that have not ended, by user: what `/queue` shows and `queue_remaining` counts. */
export class LivePrompts {
  readonly #onPending: OnPending | undefined;
  readonly #users = new Map<string, UserPrompts>();
  readonly #sizes = new Map<LivePrompt, number>();
  #bytes = 0;

  constructor(onPending?: OnPending) {
    this.#onPending = onPending;
  }

  add(prompt: LivePrompt): void {
    const { user } = prompt.caller;
    const known = this.#users.get(user);
    const userPrompts: UserPrompts = known ?? { prompts: new Set(), byId: new Map() };
    this.#users.set(user, userPrompts);
    if (!userPrompts.prompts.has(prompt)) {
      this.#sizes.set(prompt, sizeOf(prompt));
      this.#bytes += sizeOf(prompt);
      this.#onPending?.(prompt, prompt.waitReason);
    }
    userPrompts.prompts.add(prompt);
    addToIndex(userPrompts, prompt, prompt.promptId);
  }

  /** Sets the v2 job of a prompt. `find` then finds the prompt by the id of the job, too. */
  setJobId(prompt: LivePrompt, jobId: string): void {
    prompt.jobId = jobId;
    this.setWaitReason(prompt, 'job_queued');
    const userPrompts = this.#users.get(prompt.caller.user);
    if (userPrompts?.prompts.has(prompt)) addToIndex(userPrompts, prompt, jobId);
  }

  /**
   * Removes the job from a prompt: the job is gone, and the prompt is going to get another one.
   */
  clearJobId(prompt: LivePrompt): void {
    const { jobId, promptId } = prompt;
    prompt.jobId = null;
    prompt.status = undefined;
    this.setWaitReason(prompt, 'job_lost');
    const userPrompts = this.#users.get(prompt.caller.user);
    if (userPrompts && jobId !== null && jobId !== promptId)
      removeFromIndex(userPrompts, prompt, jobId);
  }

  remove(prompt: LivePrompt): void {
    const { user } = prompt.caller;
    const userPrompts = this.#users.get(user);
    if (!userPrompts?.prompts.delete(prompt)) return;
    this.#bytes -= this.#sizes.get(prompt) ?? 0;
    this.#sizes.delete(prompt);
    for (const id of idsOf(prompt)) removeFromIndex(userPrompts, prompt, id);
    if (userPrompts.prompts.size === 0) this.#users.delete(user);
  }

  has(prompt: LivePrompt): boolean {
    return this.#users.get(prompt.caller.user)?.prompts.has(prompt) ?? false;
  }

  /** Sets the reason why the prompt waits from now on. */
  setWaitReason(prompt: LivePrompt, reason: WaitReason): void {
    if (prompt.waitReason === reason) return;
    prompt.waitReason = reason;
    this.#onPending?.(prompt, reason);
  }

  /** Takes the prompt out of the outbox: its submission is being sent. */
  removeFromOutbox(prompt: LivePrompt): void {
    if (isInOutbox(prompt)) this.setWaitReason(prompt, 'submitting');
  }

  /** Marks that the prompt waits for a call of its user, which brings the key. */
  awaitCredential(prompt: LivePrompt): void {
    prompt.lacksCredential = true;
    this.#onPending?.(prompt, 'no_key');
  }

  /** Returns the prompts of a user in the order they run. */
  list(user: string): readonly LivePrompt[] {
    return [...this.#all(user)].toSorted(byQueueOrder);
  }

  /** True when another job of this user is ahead in the queue and still queued. */
  hasEarlierQueued(prompt: LivePrompt): boolean {
    for (const other of this.#all(prompt.caller.user)) {
      if (other.status === 'queued' && byQueueOrder(other, prompt) < 0) return true;
    }
    return false;
  }

  count(user: string): number {
    return this.#users.get(user)?.prompts.size ?? 0;
  }

  /** Bytes of the graphs and extra data of all live prompts. */
  bytes(): number {
    return this.#bytes;
  }

  /** Unloads the graph of a prompt that is far back in the queue. */
  unloadIfFar({ caller, status, lazy }: LivePrompt): void {
    if (status !== 'queued' || this.count(caller.user) <= LOADED_PROMPTS) return;
    unload(lazy.graph);
    unload(lazy.extraData);
  }

  /** Counts the prompts of all users in each of these states. */
  countByState(
    isCounted: (prompt: LivePrompt) => boolean = () => true,
  ): Readonly<Record<LivePromptState, number>> {
    const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
    for (const { prompts } of this.#users.values())
      for (const prompt of prompts) if (isCounted(prompt)) counts[stateOf(prompt)]++;
    return counts;
  }

  // The newest prompt wins: v1 lets a client reuse an id while the first prompt is live. A prompt
  // that waited for its job is found by its own id and by the id of the job.
  find(user: string, id: string): LivePrompt | undefined {
    const matches = this.#users.get(user)?.byId.get(id) ?? [];
    return matches.length < 2 ? matches[0] : matches.toSorted(byCreation).at(-1);
  }

  /** Returns the prompts of this user that are in the outbox. */
  inOutbox(user: string): readonly LivePrompt[] {
    return [...this.#all(user)].filter(isInOutbox);
  }

  /**
   * Returns the prompts that an interrupt stops. A prompt that has just ended is left out, though
   * `/queue` shows it until its history is written.
   */
  interruptible(user: string): readonly LivePrompt[] {
    return shownAsRunning(this.list(user).filter(({ isEnding }) => !isEnding));
  }

  #all(user: string): Iterable<LivePrompt> {
    return this.#users.get(user)?.prompts ?? [];
  }
}

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
export function hasEnded({ status }: { readonly status: JobStatus | undefined }): boolean {
  return status !== undefined && IS_TERMINAL[status];
}

function stateOf(prompt: LivePrompt): LivePromptState {
  if (prompt.status === undefined) return 'waiting';
  if (hasEnded(prompt)) return 'ending';
  return prompt.status === 'queued' ? 'queued' : 'running';
}
