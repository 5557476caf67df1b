import { type Graph, IS_TERMINAL, type JobStatus } from '../protocol/v2.ts';
import { unload } from '../lib/lazy-json.ts';
import { ByUser } from '../sockets/by-user.ts';
import type { LivePrompt } from './live-prompt.ts';
import { type PendingReason, type WaitReason, isInOutbox } from './pending-reason.ts';
import { byCreation, byQueueOrder } from './queue-order.ts';

/**
 * `waiting`: the prompt has no job yet. `ending`: the job has ended, its history is being written.
 */
type LivePromptState = 'waiting' | 'queued' | 'running' | 'ending';

/** The number of a user's prompts whose graphs stay in memory. */
const LOADED_PROMPTS = 16;

/** A job that a prompt gets, with the graph that v1 shows. */
export type NewJob = {
  readonly jobId: string;
  readonly graph: Graph;
  readonly targets: readonly string[];
};

/** Called when a prompt begins to wait, and each time its own reason changes. */
export type OnPending = (prompt: LivePrompt, reason: PendingReason) => void;

/** All prompts that have not ended, by user: what `/queue` shows and `queue_remaining` counts. */
export class LivePrompts {
  readonly #onPending: OnPending | undefined;
  readonly #prompts = new ByUser<LivePrompt>();
  /**
   * By user and id, that of the prompt or of its job: the ranks of all waiting jobs are compared at
   * each end of one, and each rank asks for a prompt.
   */
  readonly #byId = new ByUser<LivePrompt>();
  readonly #sizes = new Map<LivePrompt, number>();
  #bytes = 0;

  constructor(onPending?: OnPending) {
    this.#onPending = onPending;
  }

  add(prompt: LivePrompt): void {
    if (this.has(prompt)) return;
    this.#prompts.add(prompt.caller.user, prompt);
    for (const place of placesOf(prompt)) this.#byId.add(place, prompt);
    this.#sizes.set(prompt, sizeOf(prompt));
    this.#bytes += sizeOf(prompt);
    this.#onPending?.(prompt, prompt.waitReason);
  }

  /**
   * Sets the v2 job of a prompt, and what v1 shows of it. `find` then finds the prompt by the id of
   * the job, too.
   */
  setJob(prompt: LivePrompt, { jobId, graph, targets }: NewJob): void {
    if (prompt.jobId !== jobId) prompt.status = 'queued';
    this.#changeJobId(prompt, jobId);
    this.setWaitReason(prompt, 'job_queued');
    Object.assign(prompt, { graph, targets });
  }

  /**
   * Removes the job from a prompt: the job is gone, and the prompt is going to get another one.
   */
  clearJob(prompt: LivePrompt): void {
    this.#changeJobId(prompt, null);
    prompt.status = undefined;
    this.setWaitReason(prompt, 'job_lost');
  }

  remove(prompt: LivePrompt): void {
    for (const place of placesOf(prompt)) this.#byId.delete(place, prompt);
    this.#prompts.delete(prompt.caller.user, prompt);
    this.#bytes -= this.#sizes.get(prompt) ?? 0;
    this.#sizes.delete(prompt);
  }

  has(prompt: LivePrompt): boolean {
    return this.#sizes.has(prompt);
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
    return [...this.#prompts.of(user)].toSorted(byQueueOrder);
  }

  /** True when another job of this user is ahead in the queue and still queued. */
  hasEarlierQueued(prompt: LivePrompt): boolean {
    return [...this.#prompts.of(prompt.caller.user)].some(
      (other) => other.status === 'queued' && byQueueOrder(other, prompt) < 0,
    );
  }

  count(user: string): number {
    return this.#prompts.of(user).size;
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
    for (const prompt of this.#prompts.all()) if (isCounted(prompt)) counts[stateOf(prompt)]++;
    return counts;
  }

  // The newest prompt wins: v1 lets a client reuse an id while the first prompt is live. A prompt
  // that waited for its job is found by its own id and by the id of the job.
  find(user: string, id: string): LivePrompt | undefined {
    return [...this.#byId.of(placeOf(user, id))].toSorted(byCreation).at(-1);
  }

  /** Returns the prompts of this user that are in the outbox. */
  inOutbox(user: string): readonly LivePrompt[] {
    return [...this.#prompts.of(user)].filter(isInOutbox);
  }

  /**
   * Returns the prompts that an interrupt stops. A prompt that has just ended is left out, though
   * `/queue` shows it until its history is written.
   */
  interruptible(user: string): readonly LivePrompt[] {
    return shownAsRunning(this.list(user).filter(({ isEnding }) => !isEnding));
  }

  #changeJobId(prompt: LivePrompt, jobId: string | null): void {
    for (const place of placesOf(prompt)) this.#byId.delete(place, prompt);
    prompt.jobId = jobId;
    if (this.has(prompt)) for (const place of placesOf(prompt)) this.#byId.add(place, prompt);
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

function placesOf({ caller: { user }, promptId, jobId }: LivePrompt): readonly string[] {
  return [promptId, ...(jobId === null ? [] : [jobId])].map((id) => placeOf(user, id));
}

function placeOf(user: string, id: string): string {
  return JSON.stringify([user, id]);
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
