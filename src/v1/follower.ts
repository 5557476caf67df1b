import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { HistoryLimits, Ledger } from '../ledger/ledger.ts';
import type { Logger } from '../telemetry.ts';
import type { Caller, JobApi, JobEvent, Result } from '../wire/jobs.ts';
import type { Graph } from '../wire/v2.ts';
import { within } from '../within.ts';
import type { Board, LivePrompt, PromptDraft } from './board.ts';
import { createEndings } from './endings.ts';
import type { Hub } from './hub.ts';
import { type JoblessEnd, type ListenerDeps, createListener } from './listener.ts';
import { newPrompt, restIfFar } from './live-prompt.ts';
import { previewMethodIn } from './preview-method.ts';
import { type Entry, type Hearer, LeadLost, type PromptJournal, ifLost } from './prompt-journal.ts';
import type { Resend } from './resend.ts';
import { type Teller, createTeller } from './teller.ts';

/** Turns what jobs do into what v1 clients hear, one prompt at a time, until each has its history. */
export type Follower = {
  /** Puts a prompt on the board, unless it is there. */
  adopt(draft: PromptDraft, caller: Caller): LivePrompt;
  find(key: string): LivePrompt | undefined;
  /** Takes a prompt off the board that another process calls by this other id. */
  disown(key: string, promptId: string | undefined): void;
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
  begin(prompt: LivePrompt): Promise<void>;
  /** Lets the prompt's frames go; before this nothing of it has reached a socket. */
  release(prompt: LivePrompt): void;
  /** Notes where the prompt is; `false`: it is another process's. */
  note(prompt: LivePrompt, kind: Exclude<Entry['kind'], 'input'>): Promise<boolean>;
  /** Ends a prompt no job speaks for; resolves when its history is written. */
  settle(prompt: LivePrompt, how: JoblessEnd): Promise<void>;
  /** Goes on with the end of a prompt whose end was heard; `false`: it was not. */
  conclude(prompt: LivePrompt): boolean;
  /** Stops listening; live prompts stay live in the ledger. */
  close(): Promise<void>;
};

export type FollowerDeps = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly journal: PromptJournal;
  readonly board: Board;
  readonly hub: Hub;
  readonly log: Logger;
  readonly now: () => number;
  /** How much of each user's history is kept, and of one prompt's graph in it. */
  readonly history: HistoryLimits & { readonly graphBytes: number };
  /** True when the job service may lose jobs it took. */
  readonly mayLoseJobs: boolean;
  /** Decides on a prompt whose job is gone, or failed, before it began. */
  readonly resend: Resend;
  /** Hears how each prompt ended, in v1's word. */
  readonly onEnded?: (statusWord: string) => void;
};

type Feed = Promise<Result<AsyncIterable<JobEvent>>>;

/** What is to happen before a prompt's events are taken in, and who says them. */
type Line = {
  readonly prompt: LivePrompt;
  feed: Feed | undefined;
  isReleased: boolean;
  readonly released: Promise<void>;
  readonly release: () => void;
  readonly teller: Teller;
  /** What another process says of it waits for this: its client is being answered here. */
  held: Promise<unknown> | undefined;
  readonly answered: Promise<void>;
  readonly answer: () => void;
  isDisowned: boolean;
  /** Aborted when another process looks after it, and when this one closes. */
  stop: AbortController;
};

/** Between a stream that ended early and the next try. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** A client that is told what it asked for is told so soon. */
const ANSWERED_WITHIN_MS = 10_000;
/** History may outgrow its limit by a hundredth, and by so many prompts at most, before it is cut. */
const PRUNE_EVERY = 50;

export function createFollower(given: FollowerDeps): Follower {
  const endings = createEndings();
  let storedBytes = 0;
  const onStored = (bytes: number): void => void (storedBytes += bytes);
  const deps = { ...given, endings, onStored };
  const { jobs, board, hub, log, journal } = deps;
  const lines = new Map<string, Line>();
  const tasks = new Set<Promise<void>>();
  const { history } = deps;
  const pruneEvery = Math.min(PRUNE_EVERY, Math.ceil(history.count / 100));
  let ended = 0;
  let isClosed = false;

  async function prune(): Promise<void> {
    const isTime = ++ended % pruneEvery === 0 || storedBytes > history.bytes / 100;
    if (!isTime) return;
    storedBytes = 0;
    await deps.ledger.prompts.pruneHistory(history);
  }

  function run({ stop }: Line, act: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const tracked = act(stop.signal)
      .then(prune)
      .catch((error: unknown) => {
        if (stop.signal.aborted || error instanceof LeadLost) return;
        log.error({ err: error }, 'a prompt could not be ended');
      })
      .finally(() => tasks.delete(tracked));
    tasks.add(tracked);
    return tracked;
  }

  async function note(prompt: LivePrompt, kind: Exclude<Entry['kind'], 'input'>): Promise<boolean> {
    const noted = journal.append(prompt.key, { kind }).then(() => true);
    return await noted.catch(ifLost(false));
  }

  function hearerOf({ key, channel, caller: { user } }: LivePrompt, line: Line): Hearer {
    const isNew = journal.leads(key);
    return {
      async apply(entry, at) {
        if (line.held) await line.held;
        if (line.isDisowned) return;
        if (entry.kind === 'released') line.isReleased = true;
        await line.teller.apply(entry, at);
        if (entry.kind === 'released') line.release();
        if (entry.kind === 'recorded' || entry.kind === 'removed') lines.delete(key);
      },
      lost() {
        endings.done(user, key);
        if (isNew && !line.isReleased) line.held = within(ANSWERED_WITHIN_MS, line.answered);
        line.stop.abort();
        line.stop = newStop();
        line.feed = undefined;
      },
      joined: (upTo, since) => channel.skip(upTo, since),
      receivedElsewhere: (audience, upTo) => channel.forget(audience, upTo),
    };
  }

  return {
    adopt(draft, caller) {
      const { user } = caller;
      const { key, clientId, promptId } = draft;
      const known = lines.get(key);
      if (known) return known.prompt;
      const previewMethod = previewMethodIn(draft.extraData.preview_method);
      const address = { user, clientId, promptId, isV2Job: draft.isV2Job ?? false, previewMethod };
      const channel = hub.channel(address, (audience, at) => journal.received(key, audience, at));
      const prompt = newPrompt(draft, { caller, channel });
      board.add(prompt);
      const line = createLine(prompt, createTeller(deps, prompt));
      lines.set(key, line);
      journal.join({ key, user }, hearerOf(prompt, line));
      return prompt;
    },
    find: (key) => lines.get(key)?.prompt,
    disown(key, promptId) {
      const line = lines.get(key);
      if (!line || line.prompt.promptId === promptId) return;
      const { prompt } = line;
      line.isDisowned = true;
      line.answer();
      lines.delete(key);
      board.remove(prompt);
      hub.retire(prompt.channel);
    },
    attach(prompt, { jobId, graph, targets }) {
      const status = prompt.jobId === jobId ? prompt.status : 'queued';
      board.employ(prompt, jobId);
      Object.assign(prompt, { graph, targets, status });
      const line = lines.get(prompt.key);
      if (line) line.feed = jobs.events(prompt.caller, jobId, line.stop.signal);
    },
    async begin(prompt) {
      const line = lines.get(prompt.key);
      if (!line || !(await note(prompt, 'attached'))) return;
      restIfFar(board, prompt);
      void run(line, (signal) => line.released.then(() => followToEnd(deps, prompt, line, signal)));
    },
    release(prompt) {
      const line = lines.get(prompt.key);
      if (!line || line.isReleased) return;
      line.isReleased = true;
      line.answer();
      note(prompt, 'released').catch((error: unknown) => {
        if (!isClosed)
          log.error({ err: error, user: prompt.caller.user }, 'a prompt could not be released');
      });
    },
    note,
    async settle(prompt, how) {
      const line = lines.get(prompt.key);
      if (!line) return;
      await run(line, async (signal) => {
        await line.released;
        signal.throwIfAborted();
        await createListener(deps, prompt, line.teller).end(how);
      });
    },
    conclude(prompt) {
      const line = lines.get(prompt.key);
      if (!line?.teller.hasEnded()) return false;
      void run(line, () => createListener(deps, prompt, line.teller).conclude());
      return true;
    },
    async close() {
      isClosed = true;
      for (const { stop, release } of lines.values()) {
        stop.abort();
        release();
      }
      await Promise.all(tasks);
    },
  };
}

function createLine(prompt: LivePrompt, teller: Teller): Line {
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  return {
    prompt,
    teller,
    feed: undefined,
    isReleased: false,
    released,
    release,
    held: undefined,
    answered,
    answer,
    isDisowned: false,
    stop: newStop(),
  };
}

function newStop(): AbortController {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  return stop;
}

/** Streams while there is a stream, reads the job when there is none, until it has ended. */
async function followToEnd(
  deps: ListenerDeps,
  prompt: LivePrompt,
  { feed, teller }: Line,
  signal: AbortSignal,
): Promise<void> {
  const { jobId } = prompt;
  signal.throwIfAborted();
  if (jobId === null) return;
  const listener = createListener(deps, prompt, teller);
  let source = feed;
  for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
    try {
      const stream = await (source ?? deps.jobs.events(prompt.caller, jobId, signal));
      if (stream.ok) await listener.hear(stream.value);
      signal.throwIfAborted();
      if (await listener.look(jobId)) return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof LeadLost) throw error;
      deps.log.error(
        { err: error, user: prompt.caller.user, promptId: prompt.promptId },
        'following failed, trying again',
      );
    }
    source = undefined;
    await delay(waitMs, undefined, { signal });
  }
}
