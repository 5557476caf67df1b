import type { JsonObject } from '../wire/json.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../wire/v2.ts';
import type { Channel } from './channel.ts';

/** What is known of a prompt from its `POST` on. */
export type PromptDraft = {
  readonly key: string;
  readonly promptId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly graph: Graph;
  readonly extraData: JsonObject;
  readonly targets: readonly string[];
  /** It was accepted by an earlier process. */
  readonly isResumed: boolean;
};

/** A prompt between its accepted `POST` and its history entry. */
export type LivePrompt = Omit<PromptDraft, 'graph' | 'targets'> & {
  readonly channel: Channel;
  /** Its credential, if any, is in memory only. */
  caller: Caller;
  graph: Graph;
  targets: readonly string[];
  /** `null`: no v2 job is known, and then there is no status either. */
  jobId: string | null;
  /** A terminal one: the job is over, its history is still being written. */
  status: JobStatus | undefined;
  /** The job has shown a node, a step, a preview or an output. */
  hasEvidence: boolean;
  cancelAsked: boolean;
  startedAtMs: number | null;
};

/** `waiting`: no job of it is known yet; `ending`: the job is over, its history is being written. */
export type PromptState = 'waiting' | 'queued' | 'running' | 'ending';

/** All live prompts, by user: what `/queue` shows and `queue_remaining` counts. */
export type Board = {
  add(prompt: LivePrompt): void;
  remove(prompt: LivePrompt): void;
  has(prompt: LivePrompt): boolean;
  /** In the order they will run. */
  of(user: string): readonly LivePrompt[];
  readonly count: (user: string) => number;
  /** How many of all users' are in which state. */
  census(): Readonly<Record<PromptState, number>>;
  find(user: string, promptId: string): LivePrompt | undefined;
  /** What `/queue` calls running: what runs, else the oldest that has a job. */
  running(user: string): readonly LivePrompt[];
};

export function createBoard(): Board {
  const users = new Map<string, Set<LivePrompt>>();
  const of = (user: string) => [...(users.get(user) ?? [])].toSorted(byTurn);
  return {
    add(prompt) {
      const { user } = prompt.caller;
      users.set(user, (users.get(user) ?? new Set()).add(prompt));
    },
    remove(prompt) {
      const theirs = users.get(prompt.caller.user);
      theirs?.delete(prompt);
      if (theirs?.size === 0) users.delete(prompt.caller.user);
    },
    has: (prompt) => users.get(prompt.caller.user)?.has(prompt) ?? false,
    of,
    count: (user) => users.get(user)?.size ?? 0,
    census() {
      const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
      for (const theirs of users.values()) for (const prompt of theirs) counts[stateOf(prompt)]++;
      return counts;
    },
    // The newest one: v1 lets a client use an id again while the first is live. A prompt that
    // waited for its job answers to its own id and to the job's.
    find: (user, id) =>
      [...(users.get(user) ?? [])].findLast((p) => p.promptId === id || p.jobId === id),
    running(user) {
      const withJob = of(user).filter((prompt) => prompt.status !== undefined && !isOver(prompt));
      const active = withJob.filter((prompt) => prompt.status !== 'queued');
      if (active.length > 0) return active;
      // One client shows nothing, another crashes, when jobs wait and none of them is running.
      const oldest = [...(users.get(user) ?? [])].find((prompt) => withJob.includes(prompt));
      return oldest ? [oldest] : [];
    },
  };
}

/** Whether it can be taken out of the queue: nothing of it runs, as far as is known. */
export function isWaiting({ status }: Pick<LivePrompt, 'status'>): boolean {
  return status === undefined || status === 'queued';
}

/** Whether nothing of it is left to run or to stop. */
export function isOver({ status }: Pick<LivePrompt, 'status'>): boolean {
  return status !== undefined && IS_TERMINAL[status];
}

function stateOf(prompt: LivePrompt): PromptState {
  if (prompt.status === undefined) return 'waiting';
  if (isOver(prompt)) return 'ending';
  return prompt.status === 'queued' ? 'queued' : 'running';
}

/** Lower number first; the sort keeps equal ones as they came, which is how the engine runs them. */
function byTurn(a: LivePrompt, b: LivePrompt): number {
  return a.number - b.number;
}
