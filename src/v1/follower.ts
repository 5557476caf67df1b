import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { Caller, JobApi, JobEvent, Result } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import type { Board, LivePrompt, PromptDraft } from './board.ts';
import type { Hub } from './hub.ts';
import { type JoblessEnd, createListener } from './listener.ts';

/** Turns what jobs do into what v1 clients hear, one prompt at a time, until each has its history. */
export type Follower = {
  /** Puts a prompt on the board. */
  adopt(draft: PromptDraft, caller: Caller): LivePrompt;
  /** Its job is there: listens to it from this moment on. */
  attach(
    prompt: LivePrompt,
    job: {
      readonly jobId: string;
      readonly graph: Graph;
      readonly targets: readonly string[];
    },
  ): void;
  /** The job is on record: what it does is taken in as soon as the prompt is released. */
  begin(prompt: LivePrompt): void;
  /** Lets the prompt's frames go; before this nothing of it has reached a socket. */
  release(prompt: LivePrompt): void;
  /** Ends a prompt no job speaks for; resolves when its history is written. */
  settle(prompt: LivePrompt, how: JoblessEnd): Promise<void>;
  /** Stops listening; live prompts stay live in the ledger. */
  close(): Promise<void>;
};

export type FollowerDeps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly board: Board;
  readonly hub: Hub;
  readonly log: Logger;
  readonly now: () => number;
  readonly historyLimit: number;
  /** Hears how each prompt ended, in v1's word. */
  readonly onEnded?: (statusWord: string) => void;
};

type Feed = Promise<Result<AsyncIterable<JobEvent>>>;

/** What is to happen before a prompt's events are taken in. */
type Line = {
  feed: Feed | undefined;
  isReleased: boolean;
  readonly released: Promise<void>;
  readonly release: () => void;
};

/** Between a stream that ended early and the next try. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** History may outgrow its limit by a hundredth, and by so many prompts at most, before it is cut. */
const PRUNE_EVERY = 50;

export function createFollower(deps: FollowerDeps): Follower {
  const { jobs, board, hub, log } = deps;
  const stop = new AbortController();
  // One for each live prompt.
  setMaxListeners(0, stop.signal);
  const lines = new WeakMap<LivePrompt, Line>();
  const held = new Set<Line>();
  const tasks = new Set<Promise<void>>();
  const pruneEvery = Math.min(PRUNE_EVERY, Math.ceil(deps.historyLimit / 100));
  let ended = 0;

  async function prune(): Promise<void> {
    if (++ended % pruneEvery === 0) await deps.ledger.prompts.pruneHistory(deps.historyLimit);
  }

  function run(task: Promise<void>): Promise<void> {
    const tracked = task
      .then(prune)
      .catch((error: unknown) => {
        if (!stop.signal.aborted) log.error({ err: error }, 'a prompt could not be ended');
      })
      .finally(() => tasks.delete(tracked));
    tasks.add(tracked);
    return tracked;
  }

  return {
    adopt(draft, caller) {
      const { user } = caller;
      const { clientId, promptId } = draft;
      const noPreviews = draft.extraData.preview_method === 'none';
      const own = noPreviews ? { previewMethod: 'none' as const } : {};
      const channel = hub.channel({ user, clientId, promptId, ...own });
      const prompt: LivePrompt = { ...draft, ...FRESH, caller, channel };
      board.add(prompt);
      lines.set(prompt, createLine());
      return prompt;
    },
    attach(prompt, { jobId, graph, targets }) {
      board.employ(prompt, jobId);
      Object.assign(prompt, { graph, targets, status: 'queued' });
      const line = lines.get(prompt);
      if (line) line.feed = jobs.events(prompt.caller, jobId, stop.signal);
    },
    begin(prompt) {
      const line = lines.get(prompt);
      if (line) void run(line.released.then(() => followToEnd(deps, prompt, { line, stop })));
    },
    release(prompt) {
      const line = lines.get(prompt);
      if (!line || line.isReleased) return;
      line.isReleased = true;
      held.delete(line);
      hub.status(prompt.caller.user);
      line.release();
    },
    settle: (prompt, how) =>
      run(
        (async () => {
          await lines.get(prompt)?.released;
          stop.signal.throwIfAborted();
          await createListener(deps, prompt).end(how);
        })(),
      ),
    async close() {
      stop.abort();
      for (const line of held) line.release();
      await Promise.all(tasks);
    },
  };

  function createLine(): Line {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const line = { feed: undefined, isReleased: false, released, release };
    held.add(line);
    return line;
  }
}

const FRESH = {
  jobId: null,
  status: undefined,
  hasEvidence: false,
  cancelAsked: false,
  startedAtMs: null,
} as const;

/** Streams while there is a stream, reads the job when there is none, until it has ended. */
async function followToEnd(
  deps: FollowerDeps,
  prompt: LivePrompt,
  { line, stop }: { readonly line: Line; readonly stop: AbortController },
): Promise<void> {
  const { signal } = stop;
  const { jobId } = prompt;
  signal.throwIfAborted();
  if (jobId === null) return;
  const listener = createListener(deps, prompt);
  let source = line.feed;
  for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
    try {
      const stream = await (source ?? deps.jobs.events(prompt.caller, jobId, signal));
      if (stream.ok) await listener.hear(stream.value);
      signal.throwIfAborted();
      if (await listener.look(jobId)) return;
    } catch (error) {
      signal.throwIfAborted();
      deps.log.error({ err: error, promptId: prompt.promptId }, 'following failed, trying again');
    }
    source = undefined;
    await delay(waitMs, undefined, { signal });
  }
}
