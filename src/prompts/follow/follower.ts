import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Caller, JobEvent, Result } from '../../protocol/job-api.ts';
import type { Graph } from '../../protocol/v2.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { LivePrompt, PromptDraft } from '../live-prompts.ts';
import { createEndingPrompts } from './ending-prompts.ts';
import type { Hub } from '../../sockets/hub.ts';
import { type EndWithoutJob, type JobConsumerOptions, createJobConsumer } from './job-consumer.ts';
import { createLivePrompt, unloadIfFar } from '../state/live-prompt.ts';
import { previewMethodIn } from '../../sockets/preview-method.ts';
import {
  type PromptLogEntry,
  type LogSubscriber,
  LeadershipLost,
  ifLeadershipLost,
} from '../prompt-event-log.ts';
import { type EntryApplier, createEntryApplier } from './apply-entry.ts';

/** Turns the events of jobs into v1 frames, until each prompt has its history. */
export type Follower = {
  /** Adds a prompt to the live prompts, unless it is there. */
  trackPrompt(draft: PromptDraft, caller: Caller): LivePrompt;
  find(key: string): LivePrompt | undefined;
  /** Removes a prompt that another process knows by this other id. */
  untrack(key: string, promptId: string | undefined): void;
  /** Sets the job of the prompt and opens its event stream. */
  attachJob(
    prompt: LivePrompt,
    job: {
      readonly jobId: string;
      readonly graph: Graph;
      readonly targets: readonly string[];
    },
  ): void;
  /** The job is recorded: its events are consumed as soon as the prompt is released. */
  follow(prompt: LivePrompt): Promise<void>;
  /** Lets the frames of the prompt reach sockets; none is sent before. */
  releaseFrames(prompt: LivePrompt): void;
  /** Appends an entry to the log of the prompt. `false`: another process owns the prompt. */
  appendEntry(prompt: LivePrompt, kind: Exclude<PromptLogEntry['kind'], 'input'>): Promise<boolean>;
  /** Ends a prompt that has no job; resolves when its history is written. */
  finishWithoutJob(prompt: LivePrompt, ending: EndWithoutJob): Promise<void>;
  /** Writes the history of a prompt whose end is in its log. `false`: it is not. */
  resumeFinish(prompt: LivePrompt): boolean;
  /** Stops following; live prompts stay live in the ledger. */
  close(): Promise<void>;
};

export type FollowerOptions = Omit<JobConsumerOptions, 'endingPrompts' | 'onStored'> & {
  readonly hub: Hub;
};

type JobEventStream = Promise<Result<AsyncIterable<JobEvent>>>;

/** A prompt that this process follows, and the conditions before its events are consumed. */
type FollowedPrompt = {
  readonly prompt: LivePrompt;
  eventStream: JobEventStream | undefined;
  isReleased: boolean;
  readonly released: Promise<void>;
  readonly releaseFrames: () => void;
  readonly entryApplier: EntryApplier;
  /** Entries of another process wait for this: the client is being answered here. */
  blockedUntil: Promise<unknown> | undefined;
  readonly answered: Promise<void>;
  readonly markAnswered: () => void;
  isUntracked: boolean;
  /** Aborted when another process takes the prompt over, and when this one closes. */
  stop: AbortController;
};

/** Wait between a stream that ended early and the next attempt. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** The longest time from taking a prompt to answering its client. */
const ANSWER_TIMEOUT_MS = 10_000;
/** History is pruned when it exceeds its limit by a hundredth, or after this many prompts. */
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
        log.error({ event: 'prompt.finish_failed', err: error }, 'could not finish a prompt');
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
          log.error(
            { event: 'prompt.release_failed', err: error, user: prompt.caller.user },
            'could not release the frames of a prompt',
          );
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

/**
 * Consumes the event stream, and polls the job when there is no stream, until the job has ended.
 */
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
        {
          event: 'prompt.follow_failed',
          err: error,
          user: prompt.caller.user,
          promptId: prompt.promptId,
        },
        'following a job failed; retrying',
      );
    }
    source = undefined;
    await delay(waitMs, undefined, { signal });
  }
}
