import { readValue } from '../../lib/lazy-json.ts';
import { BackgroundTasks } from '../../lib/concurrency.ts';
import { completesWithin } from '../../lib/completes-within.ts';
import type { Caller } from '../../protocol/job-api.ts';
import type { Channel } from '../../sockets/channel.ts';
import { previewMethodIn } from '../../sockets/preview-method.ts';
import { LivePrompt, type NewLivePrompt } from '../live-prompt.ts';
import type { NewJob } from '../live-prompts.ts';
import {
  LeadershipLost,
  type LogSubscriber,
  type PromptLogEntry,
  ifLeadershipLost,
} from '../prompt-event-log.ts';
import type { PromptPorts } from '../ports.ts';
import { HistoryPruner } from '../state/history-pruner.ts';
import { EntryApplier } from './apply-entry.ts';
import { EndOrder } from './end-order.ts';
import { EndingPrompts } from './ending-prompts.ts';
import { FollowedPrompt } from './followed-prompt.ts';
import { type EndWithoutJob, JobConsumer, type JobConsumerOptions } from './job-consumer.ts';
import type { ResendLost } from './lost-job.ts';
import { retry } from '../../lib/retry.ts';

/** Entries about the prompt itself; the other entries are the events of its job. */
type StateEntryKind = Exclude<PromptLogEntry['kind'], 'input'>;

/** The wait between a stream that ended early and the next attempt. */
const RETRY_MS = { first: 250, last: 5000 } as const;
/** The longest time from taking a prompt to answering its client. */
const ANSWER_TIMEOUT_MS = 10_000;

/** Turns the events of jobs into v1 frames, until each prompt has its history. */
export class Follower {
  readonly #ports: PromptPorts;
  readonly #followed = new Map<string, FollowedPrompt>();
  readonly #tasks = new BackgroundTasks();
  readonly #endingPrompts = new EndingPrompts();
  readonly #endOrder = new EndOrder();
  readonly #pruner: HistoryPruner;
  readonly #consumerOptions: JobConsumerOptions;

  /** `resendLost`: what follows when the job of a prompt was lost, or failed, before it started. */
  constructor(ports: PromptPorts, resendLost: ResendLost) {
    this.#ports = ports;
    this.#pruner = new HistoryPruner(ports.records.prompts, ports.policy.history);
    this.#consumerOptions = {
      ports,
      endingPrompts: this.#endingPrompts,
      pruner: this.#pruner,
      resendLost,
    };
  }

  /**
   * Adds a prompt to the live prompts, unless it is or was there: a prompt that has ended since its
   * record was read would send its frames twice.
   */
  trackPrompt(newPrompt: NewLivePrompt, caller: Caller): LivePrompt {
    const existing = this.#followed.get(newPrompt.key);
    if (existing) return existing.prompt;
    const { livePrompts, hub, spans } = this.#ports.frames;
    const { eventLog } = this.#ports.records;
    const { user } = caller;
    const { key } = newPrompt;
    const channel = this.#openChannel(newPrompt, user);
    const prompt = new LivePrompt(newPrompt, caller, channel);
    if (eventLog.hasAppliedEnd(key)) {
      hub.channels.close(channel);
      return prompt;
    }
    livePrompts.add(prompt);
    const followed = new FollowedPrompt(prompt, new EntryApplier(prompt, this.#ports));
    this.#followed.set(key, followed);
    eventLog.subscribe({ key, user }, this.#subscriberOf(followed));
    if (spans && eventLog.isLeader(key)) spans.began(caller, prompt);
    return prompt;
  }

  find(key: string): LivePrompt | undefined {
    return this.#followed.get(key)?.prompt;
  }

  /** Removes a prompt that another process knows by this other id. */
  untrack(key: string, promptId: string | undefined): void {
    const followed = this.#followed.get(key);
    if (!followed || followed.prompt.promptId === promptId) return;
    this.#untrack(followed);
    this.#ports.frames.hub.channels.close(followed.prompt.channel);
  }

  /** Removes the prompts of a user whose entries are not received any more. */
  forgetUser(user: string): void {
    for (const followed of this.#followed.values()) {
      if (followed.prompt.caller.user === user) this.#untrack(followed);
    }
    this.#ports.frames.hub.channels.removeOf(user);
  }

  #untrack(followed: FollowedPrompt): void {
    followed.close();
    this.#followed.delete(followed.prompt.key);
    this.#ports.frames.livePrompts.remove(followed.prompt);
  }

  /** Sets the job of the prompt and opens its event stream. */
  openEventStream(prompt: LivePrompt, job: NewJob): void {
    const { jobId } = job;
    const isKnown = prompt.jobId === jobId;
    this.#ports.frames.livePrompts.setJob(prompt, job);
    const followed = this.#followed.get(prompt.key);
    if (!followed || (isKnown && followed.eventStream)) return;
    followed.eventStream = this.#ports.jobs.api.events(prompt.caller, jobId, followed.signal);
    // The reader of the stream awaits it later, and sees the failure.
    followed.eventStream.catch(() => {});
  }

  /** Follows a job that is recorded: its events are consumed as soon as the prompt is released. */
  async follow(prompt: LivePrompt): Promise<void> {
    const followed = this.#followed.get(prompt.key);
    if (!followed) return;
    if (prompt.isTakenOver) {
      // A turn that is not passed makes later prompts wait.
      followed.turn?.pass();
      followed.turn = this.#endOrder.add(prompt.caller.user);
    }
    if (!(await this.appendEntry(prompt, 'attached'))) return followed.turn?.pass();
    this.#ports.frames.livePrompts.unloadIfFar(prompt);
    void this.#run(followed, (signal) => this.#followToEnd(followed, signal));
  }

  /** Lets the frames of the prompt reach sockets. No frame is sent before. */
  releaseFrames(prompt: LivePrompt): void {
    const followed = this.#followed.get(prompt.key);
    if (!followed || followed.isReleasing || prompt.isReleased) return;
    followed.answered.resolve();
    followed.isReleasing = true;
    const release = async (): Promise<void> =>
      void (followed.isReleasing = await this.appendEntry(prompt, 'released'));
    this.#retry(release, prompt, followed.signal).catch(() => {});
  }

  /** Appends an entry to the log of the prompt. `false`: another process leads the prompt. */
  async appendEntry(prompt: LivePrompt, kind: StateEntryKind): Promise<boolean> {
    const appended = this.#ports.records.eventLog.append(prompt.key, { kind }).then(() => true);
    return await appended.catch(ifLeadershipLost(false));
  }

  /** Ends a prompt that has no job; resolves when its history is written. */
  async finishWithoutJob(prompt: LivePrompt, ending: EndWithoutJob): Promise<void> {
    const followed = this.#followed.get(prompt.key);
    if (!followed) return;
    await this.#run(followed, async (signal) => {
      await followed.released.promise;
      signal.throwIfAborted();
      await this.#consumerOf(followed).endWithoutJob(ending);
    });
  }

  /** Removes a prompt that no client knows and that made no job. */
  async remove(prompt: LivePrompt): Promise<void> {
    const { prompts, eventLog } = this.#ports.records;
    if (!(await this.appendEntry(prompt, 'removed'))) return;
    await prompts.remove(prompt.key).catch(ifLeadershipLost(undefined));
    await eventLog.discard(prompt.key);
  }

  /** Writes the history of a prompt whose end is in its log. `false`: its end is not in the log. */
  continueEnd(prompt: LivePrompt): boolean {
    const followed = this.#followed.get(prompt.key);
    if (!followed?.prompt.isEnding) return false;
    void this.#run(followed, () => this.#consumerOf(followed).finish());
    return true;
  }

  /** Stops following; live prompts stay live in the ledger. */
  async close(): Promise<void> {
    for (const followed of this.#followed.values()) {
      followed.stop();
      followed.released.resolve();
    }
    await this.#tasks.close();
  }

  #openChannel({ key, clientId, promptId, lazy, isV2Job }: NewLivePrompt, user: string): Channel {
    const { frames, records } = this.#ports;
    const previewMethod = previewMethodIn(readValue(lazy.extraData).preview_method);
    const address = { user, clientId, promptId, isV2Job: isV2Job ?? false, previewMethod };
    return frames.hub.channels.open(address, (group, position) => {
      const applier = this.#followed.get(key)?.entryApplier;
      records.eventLog.markReceived(key, group, applier?.completeUpTo(position) ?? position);
    });
  }

  #subscriberOf(followed: FollowedPrompt): LogSubscriber {
    const { prompt } = followed;
    const { key, channel } = prompt;
    const isOwnNewPrompt = this.#ports.records.eventLog.isLeader(key);
    return {
      apply: async (entry, position) => {
        if (followed.blockedUntil) await followed.blockedUntil;
        if (followed.isClosed) return;
        await followed.entryApplier.apply(entry, position);
        this.#noteApplied(followed, entry);
      },
      onLeadershipLost: () => {
        this.#endingPrompts.finish(key);
        this.#ports.frames.spans?.left(key);
        if (isOwnNewPrompt && !prompt.isReleased) {
          followed.blockedUntil = completesWithin(ANSWER_TIMEOUT_MS, followed.answered.promise);
        }
        followed.restart();
      },
      onSubscribed: (upTo, since) => channel.skipReceived(upTo, since),
      onReceivedElsewhere: (group, upTo) => channel.discardReceived(group, upTo),
    };
  }

  #noteApplied(followed: FollowedPrompt, { kind }: PromptLogEntry): void {
    if (kind === 'released') followed.released.resolve();
    if (kind !== 'recorded' && kind !== 'removed') return;
    this.#followed.delete(followed.prompt.key);
    // Another process may append the same entry again.
    followed.isClosed = true;
  }

  #consumerOf(followed: FollowedPrompt): JobConsumer {
    return new JobConsumer(followed, this.#consumerOptions);
  }

  #run(followed: FollowedPrompt, action: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { prompt, signal } = followed;
    return this.#tasks.run(
      async () => {
        await action(signal).finally(() => followed.turn?.pass());
        await this.#pruner.noteEnded();
      },
      (error) => {
        if (signal.aborted || error instanceof LeadershipLost) return;
        const facts = { event: 'prompt.finish_failed', err: error };
        this.#ports.frames.log.error(facts, 'could not finish a prompt');
        this.#ports.records.eventLog.stopLeading(prompt.key);
      },
    );
  }

  /** Consumes the event stream, or polls the job without one, until the job has ended. */
  async #followToEnd(followed: FollowedPrompt, signal: AbortSignal): Promise<void> {
    const { prompt } = followed;
    await followed.released.promise;
    signal.throwIfAborted();
    const { jobId } = prompt;
    if (jobId === null) return;
    const consumer = this.#consumerOf(followed);
    let stream = followed.eventStream;
    const follow = async (): Promise<boolean> => {
      const opening = stream ?? this.#ports.jobs.api.events(prompt.caller, jobId, signal);
      stream = undefined;
      const opened = await opening;
      if (opened.ok) await consumer.consume(opened.value);
      signal.throwIfAborted();
      return consumer.poll(jobId);
    };
    await this.#retry(follow, prompt, signal);
  }

  #retry(
    attempt: () => Promise<boolean | void>,
    { caller, promptId }: LivePrompt,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#ports.policy;
    const onError = (error: unknown): void => {
      signal.throwIfAborted();
      if (error instanceof LeadershipLost) throw error;
      const facts = { event: 'prompt.follow_failed', err: error, user: caller.user, promptId };
      this.#ports.frames.log.error(facts, 'following a job failed; retrying');
    };
    return retry(attempt, { clock, waitMs: RETRY_MS, signal, onError });
  }
}
