import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { HistoryLimits, Ledger } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { Caller, JobApi, JobEvent, Result } from '../../protocol/job-api.ts';
import type { Graph } from '../../protocol/v2.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { LivePrompts, LivePrompt, PromptDraft } from '../live-prompts.ts';
import { createEndingPrompts } from './ending-prompts.ts';
import type { Hub } from '../../sockets/hub.ts';
import { type EndWithoutJob, type JobConsumerOptions, createJobConsumer } from './job-consumer.ts';
import { createLivePrompt, unloadIfFar } from '../state/live-prompt.ts';
import { previewMethodIn } from '../../sockets/preview-method.ts';
import {
  type PromptLogEntry,
  type LogSubscriber,
  LeadershipLost,
  type PromptEventLog,
  ifLeadershipLost,
} from '../prompt-event-log.ts';
import type { Resend } from '../submit/resend.ts';
import { type EntryApplier, createEntryApplier } from './apply-entry.ts';

/** Turns what jobs do into what v1 clients hear, one prompt at a time, until each has its history. */
export type Follower = {
  /** Puts a prompt on the board, unless it is there. */
  trackPrompt(draft: PromptDraft, caller: Caller): LivePrompt;
  find(key: string): LivePrompt | undefined;
  /** Takes a prompt off the board that another process calls by this other id. */
  untrack(key: string, promptId: string | undefined): void;
  /** Its job is there: listens to it from this moment on. */
  attachJob(
    prompt: LivePrompt,
    job: {
      readonly jobId: string;
      readonly graph: Graph;
      readonly targets: readonly string[];
    },
  ): void;
  /** The job is on record: what it does is taken in as soon as the prompt is released. */
  follow(prompt: LivePrompt): Promise<void>;
  /** Lets the prompt's frames go; before this nothing of it has reached a socket. */
  releaseFrames(prompt: LivePrompt): void;
  /** Notes where the prompt is; `false`: it is another process's. */
  appendEntry(prompt: LivePrompt, kind: Exclude<PromptLogEntry['kind'], 'input'>): Promise<boolean>;
  /** Ends a prompt no job speaks for; resolves when its history is written. */
  finishWithoutJob(prompt: LivePrompt, ending: EndWithoutJob): Promise<void>;
  /** Goes on with the end of a prompt whose end was heard; `false`: it was not. */
  resumeFinish(prompt: LivePrompt): boolean;
  /** Stops listening; live prompts stay live in the ledger. */
  close(): Promise<void>;
};

export type FollowerOptions = {
  readonly jobs: JobApi;
  readonly ledger: Ledger;
  readonly promptEventLog: PromptEventLog;
  readonly livePrompts: LivePrompts;
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

type JobEventStream = Promise<Result<AsyncIterable<JobEvent>>>;

/** What is to happen before a prompt's events are taken in, and who says them. */
type FollowedPrompt = {
  readonly prompt: LivePrompt;
  eventStream: JobEventStream | undefined;
  isReleased: boolean;
  readonly released: Promise<void>;
  readonly releaseFrames: () => void;
  readonly entryApplier: EntryApplier;
  /** What another process says of it waits for this: its client is being answered here. */
  blockedUntil: Promise<unknown> | undefined;
  readonly answered: Promise<void>;
  readonly markAnswered: () => void;
  isUntracked: boolean;
  /** Aborted when another process looks after it, and when this one closes. */
  stop: AbortController;
};

/** Between a stream that ended early and the next try. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** A client that is told what it asked for is told so soon. */
const ANSWER_TIMEOUT_MS = 10_000;
/** History may outgrow its limit by a hundredth, and by so many prompts at most, before it is cut. */
const MAX_PROMPTS_BETWEEN_PRUNES = 50;

export function createFollower(options: FollowerOptions): Follower {
  const endingPrompts = createEndingPrompts();
  let storedBytes = 0;
  const onStored = (bytes: number): void => void (storedBytes += bytes);
  const deps = { ...options, endingPrompts, onStored };
  const { jobs, livePrompts, hub, log, promptEventLog } = deps;
  const followedPrompts = new Map<string, FollowedPrompt>();
  const tasks = new Set<Promise<void>>();
  const { history } = deps;
  const pruneEvery = Math.min(MAX_PROMPTS_BETWEEN_PRUNES, Math.ceil(history.count / 100));
  let ended = 0;
  let isClosed = false;

  async function prune(): Promise<void> {
    const isDue = ++ended % pruneEvery === 0 || storedBytes > history.bytes / 100;
    if (!isDue) return;
    storedBytes = 0;
    await deps.ledger.prompts.pruneHistory(history);
  }

  function track(
    { stop }: FollowedPrompt,
    action: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const tracked = action(stop.signal)
      .then(prune)
      .catch((error: unknown) => {
        if (stop.signal.aborted || error instanceof LeadershipLost) return;
        log.error({ err: error }, 'a prompt could not be ended');
      })
      .finally(() => tasks.delete(tracked));
    tasks.add(tracked);
    return tracked;
  }

  async function appendEntry(
    prompt: LivePrompt,
    kind: Exclude<PromptLogEntry['kind'], 'input'>,
  ): Promise<boolean> {
    const noted = promptEventLog.append(prompt.key, { kind }).then(() => true);
    return await noted.catch(ifLeadershipLost(false));
  }

  function createSubscriber(
    { key, channel, caller: { user } }: LivePrompt,
    followed: FollowedPrompt,
  ): LogSubscriber {
    const isOwnNewPrompt = promptEventLog.isLeader(key);
    return {
      async apply(entry, at) {
        if (followed.blockedUntil) await followed.blockedUntil;
        if (followed.isUntracked) return;
        if (entry.kind === 'released') followed.isReleased = true;
        await followed.entryApplier.apply(entry, at);
        if (entry.kind === 'released') followed.releaseFrames();
        if (entry.kind === 'recorded' || entry.kind === 'removed') followedPrompts.delete(key);
      },
      onLeadershipLost() {
        endingPrompts.finish(user, key);
        if (isOwnNewPrompt && !followed.isReleased)
          followed.blockedUntil = completesWithin(ANSWER_TIMEOUT_MS, followed.answered);
        followed.stop.abort();
        followed.stop = createStop();
        followed.eventStream = undefined;
      },
      onSubscribed: (upTo, since) => channel.skipReceived(upTo, since),
      onReceivedElsewhere: (audience, upTo) => channel.discardReceived(audience, upTo),
    };
  }

  return {
    trackPrompt(draft, caller) {
      const { user } = caller;
      const { key, clientId, promptId } = draft;
      const existing = followedPrompts.get(key);
      if (existing) return existing.prompt;
      const previewMethod = previewMethodIn(draft.extraData.preview_method);
      const address = { user, clientId, promptId, isV2Job: draft.isV2Job ?? false, previewMethod };
      const channel = hub.channel(address, (audience, at) =>
        promptEventLog.markReceived(key, audience, at),
      );
      const prompt = createLivePrompt(draft, { caller, channel });
      livePrompts.add(prompt);
      const followed = createFollowedPrompt(prompt, createEntryApplier(deps, prompt));
      followedPrompts.set(key, followed);
      promptEventLog.subscribe({ key, user }, createSubscriber(prompt, followed));
      return prompt;
    },
    find: (key) => followedPrompts.get(key)?.prompt,
    untrack(key, promptId) {
      const followed = followedPrompts.get(key);
      if (!followed || followed.prompt.promptId === promptId) return;
      const { prompt } = followed;
      followed.isUntracked = true;
      followed.markAnswered();
      followedPrompts.delete(key);
      livePrompts.remove(prompt);
      hub.closeChannel(prompt.channel);
    },
    attachJob(prompt, { jobId, graph, targets }) {
      const status = prompt.jobId === jobId ? prompt.status : 'queued';
      livePrompts.setJobId(prompt, jobId);
      Object.assign(prompt, { graph, targets, status });
      const followed = followedPrompts.get(prompt.key);
      if (followed) followed.eventStream = jobs.events(prompt.caller, jobId, followed.stop.signal);
    },
    async follow(prompt) {
      const followed = followedPrompts.get(prompt.key);
      if (!followed || !(await appendEntry(prompt, 'attached'))) return;
      unloadIfFar(livePrompts, prompt);
      void track(followed, (signal) =>
        followed.released.then(() => followToEnd(deps, prompt, followed, signal)),
      );
    },
    releaseFrames(prompt) {
      const followed = followedPrompts.get(prompt.key);
      if (!followed || followed.isReleased) return;
      followed.isReleased = true;
      followed.markAnswered();
      appendEntry(prompt, 'released').catch((error: unknown) => {
        if (!isClosed)
          log.error({ err: error, user: prompt.caller.user }, 'a prompt could not be released');
      });
    },
    appendEntry,
    async finishWithoutJob(prompt, ending) {
      const followed = followedPrompts.get(prompt.key);
      if (!followed) return;
      await track(followed, async (signal) => {
        await followed.released;
        signal.throwIfAborted();
        await createJobConsumer(deps, prompt, followed.entryApplier).end(ending);
      });
    },
    resumeFinish(prompt) {
      const followed = followedPrompts.get(prompt.key);
      if (!followed?.entryApplier.hasEnded()) return false;
      void track(followed, () => createJobConsumer(deps, prompt, followed.entryApplier).finish());
      return true;
    },
    async close() {
      isClosed = true;
      for (const { stop, releaseFrames } of followedPrompts.values()) {
        stop.abort();
        releaseFrames();
      }
      await Promise.all(tasks);
    },
  };
}

function createFollowedPrompt(prompt: LivePrompt, entryApplier: EntryApplier): FollowedPrompt {
  let releaseFrames = (): void => {};
  const released = new Promise<void>((resolve) => (releaseFrames = resolve));
  let markAnswered = (): void => {};
  const answered = new Promise<void>((resolve) => (markAnswered = resolve));
  return {
    prompt,
    entryApplier,
    eventStream: undefined,
    isReleased: false,
    released,
    releaseFrames,
    blockedUntil: undefined,
    answered,
    markAnswered,
    isUntracked: false,
    stop: createStop(),
  };
}

function createStop(): AbortController {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  return stop;
}

/** Streams while there is a stream, reads the job when there is none, until it has ended. */
async function followToEnd(
  deps: JobConsumerOptions,
  prompt: LivePrompt,
  { eventStream, entryApplier }: FollowedPrompt,
  signal: AbortSignal,
): Promise<void> {
  const { jobId } = prompt;
  signal.throwIfAborted();
  if (jobId === null) return;
  const jobConsumer = createJobConsumer(deps, prompt, entryApplier);
  let source = eventStream;
  for (let waitMs: number = RETRY_MS.first; ; waitMs = Math.min(waitMs * 2, RETRY_MS.last)) {
    try {
      const stream = await (source ?? deps.jobs.events(prompt.caller, jobId, signal));
      if (stream.ok) await jobConsumer.consume(stream.value);
      signal.throwIfAborted();
      if (await jobConsumer.poll(jobId)) return;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof LeadershipLost) throw error;
      deps.log.error(
        { err: error, user: prompt.caller.user, promptId: prompt.promptId },
        'following failed, trying again',
      );
    }
    source = undefined;
    await delay(waitMs, undefined, { signal });
  }
}
