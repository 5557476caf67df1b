import type { JsonObject } from '../wire/json.ts';
import type { Caller } from '../wire/jobs.ts';
import type { Graph, JobStatus } from '../wire/v2.ts';
import type { Channel } from './channel.ts';

/** A prompt between its accepted `POST` and its history entry. */
export type LivePrompt = {
  readonly key: string;
  /** Its credential, if any, is in memory only. */
  readonly caller: Caller;
  readonly promptId: string;
  readonly jobId: string;
  readonly number: number;
  readonly clientId: string | null;
  readonly createdAtMs: number;
  readonly graph: Graph;
  readonly extraData: JsonObject;
  readonly targets: readonly string[];
  readonly channel: Channel;
  status: JobStatus;
  /** The job has shown a node, a step, a preview or an output. */
  hasEvidence: boolean;
  cancelAsked: boolean;
  startedAtMs: number | null;
};

/** All live prompts, by user: what `/queue` shows and `queue_remaining` counts. */
export type Board = {
  add(prompt: LivePrompt): void;
  remove(prompt: LivePrompt): void;
  /** In the order they will run. */
  of(user: string): readonly LivePrompt[];
  readonly count: (user: string) => number;
  find(user: string, promptId: string): LivePrompt | undefined;
  /** What `/queue` calls running: what runs, else the oldest. */
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
    of,
    count: (user) => users.get(user)?.size ?? 0,
    // The newest one: v1 lets a client use an id again while the first is live.
    find: (user, promptId) =>
      [...(users.get(user) ?? [])].findLast((p) => p.promptId === promptId || p.jobId === promptId),
    running(user) {
      const active = of(user).filter((prompt) => prompt.status !== 'queued');
      // One client shows nothing, another crashes, when jobs wait and none of them is running.
      return active.length > 0 ? active : [...(users.get(user) ?? [])].slice(0, 1);
    },
  };
}

/** Lower number first; the sort keeps equal ones as they came, which is how the engine runs them. */
function byTurn(a: LivePrompt, b: LivePrompt): number {
  return a.number - b.number;
}
