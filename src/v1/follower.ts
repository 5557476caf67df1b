import { setTimeout as delay } from 'node:timers/promises';
import type { Ledger } from '../ledger/ledger.ts';
import { hasEvidence, initialProgress } from '../translate/progress-state.ts';
import { idleDueMs, step } from '../translate/progress.ts';
import type { Logger } from '../telemetry.ts';
import type { Caller, JobApi, JobEvent, Result } from '../wire/jobs.ts';
import { IS_TERMINAL, type Job } from '../wire/v2.ts';
import type { FileRef } from '../wire/v1.ts';
import type { Board, LivePrompt } from './board.ts';
import type { Hub } from './hub.ts';
import { nameOutput } from './names.ts';
import { createSpeaker } from './speaker.ts';

/** Turns what jobs do into what v1 clients hear, one prompt at a time, until each has its history. */
export type Follower = {
  /** Puts a prompt on the board and listens to its job from this moment on. */
  adopt(prompt: Omit<LivePrompt, Mutable | 'channel' | 'caller'>, caller: Caller): LivePrompt;
  /** Lets the prompt's frames go; before this nothing of it has reached a socket. */
  follow(prompt: LivePrompt): void;
  /** Stops listening; live prompts stay live in the ledger. */
  close(): Promise<void>;
};

type Mutable = 'status' | 'hasEvidence' | 'cancelAsked' | 'startedAtMs';

export type FollowerDeps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly board: Board;
  readonly hub: Hub;
  readonly log: Logger;
  readonly now: () => number;
  readonly historyLimit: number;
};

type Feed = Promise<Result<AsyncIterable<JobEvent>>>;

/** Between a stream that ended early and the next try. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** One upstream says `expired` of a job it is just moving between two lists. */
const SECOND_LOOK_MS = 500;
/** History may outgrow its limit by a hundredth, and by so many prompts at most, before it is cut. */
const PRUNE_EVERY = 50;

export function createFollower(deps: FollowerDeps): Follower {
  const { jobs, board, hub, log } = deps;
  const stop = new AbortController();
  const feeds = new Map<LivePrompt, Feed>();
  const tasks = new Set<Promise<void>>();
  const pruneEvery = Math.min(PRUNE_EVERY, Math.ceil(deps.historyLimit / 100));
  let ended = 0;

  async function prune(): Promise<void> {
    if (++ended % pruneEvery === 0) await deps.ledger.prompts.pruneHistory(deps.historyLimit);
  }

  return {
    adopt(given, caller) {
      const { user } = caller;
      const { clientId, promptId } = given;
      const noPreviews = given.extraData.preview_method === 'none';
      const own = noPreviews ? { previewMethod: 'none' as const } : {};
      const channel = hub.channel({ user, clientId, promptId, ...own });
      const fresh = {
        status: 'queued',
        hasEvidence: false,
        cancelAsked: false,
        startedAtMs: null,
      } as const;
      const prompt: LivePrompt = { ...given, ...fresh, caller, channel };
      board.add(prompt);
      feeds.set(prompt, jobs.events(caller, prompt.jobId, stop.signal));
      return prompt;
    },
    follow(prompt) {
      const feed = feeds.get(prompt);
      if (!feed || !feeds.delete(prompt)) return;
      const task = followToEnd(deps, prompt, { feed, signal: stop.signal })
        .then(prune)
        .catch((error: unknown) => {
          if (!stop.signal.aborted) log.error({ err: error }, 'history could not be pruned');
        })
        .finally(() => tasks.delete(task));
      tasks.add(task);
    },
    async close() {
      stop.abort();
      await Promise.all(tasks);
    },
  };
}

/** Streams while there is a stream, reads the job when there is none, until it has ended. */
async function followToEnd(
  deps: FollowerDeps,
  prompt: LivePrompt,
  { feed, signal }: { feed: Feed; signal: AbortSignal },
): Promise<void> {
  const listener = createListener(deps, prompt);
  deps.hub.status(prompt.caller.user);
  let source: Feed | undefined = feed;
  for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
    try {
      const stream = await (source ?? deps.jobs.events(prompt.caller, prompt.jobId, signal));
      if (stream.ok) await listener.hear(stream.value);
      signal.throwIfAborted();
      if (await listener.look()) return;
    } catch (error) {
      signal.throwIfAborted();
      deps.log.error({ err: error, promptId: prompt.promptId }, 'following failed, trying again');
    }
    source = undefined;
    await delay(waitMs, undefined, { signal });
  }
}

type Listener = {
  /** Takes a stream in, event by event. */
  hear(stream: AsyncIterable<JobEvent>): Promise<void>;
  /** Reads the job itself; true when that was the end. */
  look(): Promise<boolean>;
};

function createListener(deps: FollowerDeps, prompt: LivePrompt): Listener {
  const { jobs, ledger, hub, now } = deps;
  const { caller, jobId } = prompt;
  const speaker = createSpeaker(deps, prompt);
  let state = initialProgress({ promptId: prompt.promptId, graph: prompt.graph });
  let missing = 0;

  async function take(input: Parameters<typeof step>[1]): Promise<void> {
    const turn = step(state, input);
    state = turn.state;
    prompt.hasEvidence = hasEvidence(state);
    prompt.startedAtMs = state.startedAtMs;
    for (const effect of turn.effects) await speaker.say(effect, state);
  }

  async function takeEvent(event: JobEvent): Promise<void> {
    const atMs = now();
    if (event.event === 'output') {
      const file = await nameOutput(ledger.files, caller.user, event.data, atMs);
      return take({ kind: 'output', output: event.data, file, atMs });
    }
    if (event.event === 'status') noteStatus(event.data.status);
    return take({ kind: 'event', event, atMs });
  }

  /** v1 tells its sockets the count once more when a prompt leaves the queue. */
  function noteStatus(status: Job['status']): void {
    const starts = status === 'running' && prompt.status === 'queued';
    if (!IS_TERMINAL[status]) prompt.status = status;
    if (starts) hub.status(caller.user);
  }

  async function nameAll(job: Job): Promise<Map<string, FileRef>> {
    const files = new Map<string, FileRef>();
    for (const output of job.outputs) {
      files.set(output.id, await nameOutput(ledger.files, caller.user, output, now()));
    }
    return files;
  }

  async function takeJob(job: Job): Promise<boolean> {
    const kind = IS_TERMINAL[job.status] ? 'settled' : 'snapshot';
    if (job.status === 'running') noteStatus('running');
    await take({ kind, job, files: await nameAll(job), atMs: now() });
    return state.phase === 'ended';
  }

  return {
    async hear(stream) {
      const events = stream[Symbol.asyncIterator]();
      let next = events.next();
      for (;;) {
        const dueMs = idleDueMs(state);
        const winner =
          dueMs === null ? await next : await Promise.race([next, idle(dueMs - now())]);
        if (winner === undefined) await take({ kind: 'idle', atMs: now() });
        else if (winner.done) return;
        else {
          await takeEvent(winner.value);
          next = events.next();
        }
      }
    },
    async look() {
      const read = await jobs.get(caller, jobId);
      const gone = read.ok ? read.value.status === 'expired' : read.error.status === 404;
      if (gone && missing++ === 0) {
        await delay(SECOND_LOOK_MS);
        return this.look();
      }
      if (read.ok) return takeJob(read.value);
      if (gone) await take({ kind: 'lost', reason: read.error.message, atMs: now() });
      return gone;
    },
  };
}

async function idle(ms: number): Promise<undefined> {
  await delay(Math.max(1, ms), undefined, { ref: false });
}
