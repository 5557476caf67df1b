import type { JsonObject } from '../wire/json.ts';
import type { Caller } from '../wire/jobs.ts';
import { type Graph, IS_TERMINAL, type JobStatus } from '../wire/v2.ts';
import type { Channel } from './channel.ts';
import type { Kept } from './kept.ts';
import { byAge, byTurn } from './turn.ts';

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

type Replaced = 'graph' | 'graphJson' | 'extraData' | 'extraDataJson' | 'targets' | 'isResumed';

/** A prompt between its accepted `POST` and its history entry. */
export type LivePrompt = Omit<PromptDraft, Replaced> & {
  readonly channel: Channel;
  /** Its credential, if any, is in memory only. */
  caller: Caller;
  readonly kept: { readonly graph: Kept<Graph>; readonly extraData: Kept<JsonObject> };
  graph: Graph;
  readonly extraData: JsonObject;
  targets: readonly string[];
  /** `null`: no v2 job is known, and then there is no status either. */
  jobId: string | null;
  /** A terminal one: the job is over, its history is still being written. */
  status: JobStatus | undefined;
  /** The job has shown a node, a step, a preview or an output. */
  hasEvidence: boolean;
  cancelAsked: boolean;
  isResumed: boolean;
  /** Its client has been answered. */
  isReleased: boolean;
  /** It is in the outbox; the board's to say. */
  waits: boolean;
  startedAtMs: number | null;
};

/** `waiting`: no job of it is known yet; `ending`: the job is over, its history is being written. */
type PromptState = 'waiting' | 'queued' | 'running' | 'ending';

/** All live prompts, by user: what `/queue` shows and `queue_remaining` counts. */
export type Board = {
  add(prompt: LivePrompt): void;
  /** Its v2 job is known from now on; it answers to the job's id too. */
  employ(prompt: LivePrompt, jobId: string): void;
  /** Its job is gone, and it is to have another one. */
  dismiss(prompt: LivePrompt): void;
  remove(prompt: LivePrompt): void;
  has(prompt: LivePrompt): boolean;
  /** It is in the outbox from now on. */
  post(prompt: LivePrompt): void;
  /** It is not, or not any more. */
  unpost(prompt: LivePrompt): void;
  /** In the order they will run. */
  of(user: string): readonly LivePrompt[];
  /** Whether a job of the same user's that runs before this one has not been heard to start. */
  isEarly(prompt: LivePrompt): boolean;
  readonly count: (user: string) => number;
  /** Bytes of what the clients of all live prompts sent. */
  readonly bytes: () => number;
  /** How many of all users' are in which state. */
  census(): Readonly<Record<PromptState, number>>;
  find(user: string, promptId: string): LivePrompt | undefined;
  /** Those in the outbox. */
  waiting(user: string): ReadonlySet<LivePrompt>;
  /** What `/queue` calls running: what runs, else the oldest that has a job. */
  running(user: string): readonly LivePrompt[];
};

/** The prompts of one user; looking one up must not cost more the more there are. */
type Theirs = {
  readonly prompts: Set<LivePrompt>;
  readonly waiting: Set<LivePrompt>;
  readonly byId: Map<string, readonly LivePrompt[]>;
};

export function createBoard(): Board {
  const users = new Map<string, Theirs>();
  const sizes = new Map<LivePrompt, number>();
  let bytes = 0;
  const all = (user: string): Iterable<LivePrompt> => users.get(user)?.prompts ?? [];
  const of = (user: string) => [...all(user)].toSorted(byTurn);
  return {
    add(prompt) {
      const { user } = prompt.caller;
      const theirs = users.get(user) ?? newcomer();
      users.set(user, theirs);
      if (!theirs.prompts.has(prompt)) {
        sizes.set(prompt, sizeOf(prompt));
        bytes += sizeOf(prompt);
      }
      theirs.prompts.add(prompt);
      if (prompt.waits) theirs.waiting.add(prompt);
      note(theirs, prompt, prompt.promptId);
    },
    employ(prompt, jobId) {
      prompt.jobId = jobId;
      const theirs = users.get(prompt.caller.user);
      if (theirs?.prompts.has(prompt)) note(theirs, prompt, jobId);
    },
    dismiss(prompt) {
      const { jobId, promptId } = prompt;
      prompt.jobId = null;
      prompt.status = undefined;
      const theirs = users.get(prompt.caller.user);
      if (theirs && jobId !== null && jobId !== promptId) strike(theirs, prompt, jobId);
    },
    remove(prompt) {
      const theirs = users.get(prompt.caller.user);
      if (!theirs?.prompts.delete(prompt)) return;
      bytes -= sizes.get(prompt) ?? 0;
      sizes.delete(prompt);
      theirs.waiting.delete(prompt);
      for (const id of idsOf(prompt)) strike(theirs, prompt, id);
      if (theirs.prompts.size === 0) users.delete(prompt.caller.user);
    },
    has: (prompt) => users.get(prompt.caller.user)?.prompts.has(prompt) ?? false,
    post(prompt) {
      prompt.waits = true;
      const theirs = users.get(prompt.caller.user);
      if (theirs?.prompts.has(prompt)) theirs.waiting.add(prompt);
    },
    unpost(prompt) {
      prompt.waits = false;
      users.get(prompt.caller.user)?.waiting.delete(prompt);
    },
    of,
    isEarly(prompt) {
      for (const other of all(prompt.caller.user)) {
        if (other.status === 'queued' && byTurn(other, prompt) < 0) return true;
      }
      return false;
    },
    count: (user) => users.get(user)?.prompts.size ?? 0,
    bytes: () => bytes,
    census() {
      const counts = { waiting: 0, queued: 0, running: 0, ending: 0 };
      for (const { prompts } of users.values())
        for (const prompt of prompts) counts[stateOf(prompt)]++;
      return counts;
    },
    // The newest one: v1 lets a client use an id again while the first is live. A prompt that
    // waited for its job answers to its own id and to the job's.
    find(user, id) {
      const named = users.get(user)?.byId.get(id) ?? [];
      return named.length < 2 ? named[0] : named.toSorted(byAge).at(-1);
    },
    waiting: (user) => users.get(user)?.waiting ?? NOBODY,
    running(user) {
      const withJob = of(user).filter((prompt) => prompt.status !== undefined && !isOver(prompt));
      const active = withJob.filter((prompt) => prompt.status !== 'queued');
      if (active.length > 0) return active;
      // One client shows nothing, another crashes, when jobs wait and none of them is running.
      return withJob.toSorted(byAge).slice(0, 1);
    },
  };
}

const NOBODY: ReadonlySet<LivePrompt> = new Set<LivePrompt>();

/** Of a prompt whose texts have not been written it is unknown. */
function sizeOf({ kept }: LivePrompt): number {
  return (kept.graph.json?.length ?? 0) + (kept.extraData.json?.length ?? 0);
}

function newcomer(): Theirs {
  return { prompts: new Set(), waiting: new Set(), byId: new Map() };
}

function idsOf({ promptId, jobId }: LivePrompt): readonly string[] {
  return jobId === null || jobId === promptId ? [promptId] : [promptId, jobId];
}

function note({ byId }: Theirs, prompt: LivePrompt, id: string): void {
  const named = byId.get(id) ?? [];
  if (!named.includes(prompt)) byId.set(id, [...named, prompt]);
}

function strike({ byId }: Theirs, prompt: LivePrompt, id: string): void {
  const left = (byId.get(id) ?? []).filter((other) => other !== prompt);
  if (left.length > 0) byId.set(id, left);
  else byId.delete(id);
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
