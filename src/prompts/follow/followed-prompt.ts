import { createDeferred } from '../../lib/concurrency.ts';
import type { JobEvent, Result } from '../../protocol/job-api.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { EntryApplier } from './apply-entry.ts';
import type { EndTurn } from './end-order.ts';

export type JobEventStream = Promise<Result<AsyncIterable<JobEvent>>>;

/** A prompt that this process follows, and the conditions before its events are consumed. */
export class FollowedPrompt {
  readonly prompt: LivePrompt;
  readonly entryApplier: EntryApplier;
  /** Opened as soon as the job is known. */
  eventStream: JobEventStream | undefined;
  /**
   * True when this process has answered the client; `LivePrompt.isReleased`: when any process has.
   */
  isAnswered = false;
  /** True while this process tries to append that the prompt is released, and when it did. */
  isReleasing = false;
  /** True when no further entries are applied. */
  isClosed = false;
  /** Entries of another process wait for this promise while the client is being answered here. */
  blockedUntil: Promise<unknown> | undefined;
  #turn: EndTurn | undefined;
  readonly #released = createDeferred();
  readonly #answered = createDeferred();
  #stop = new AbortController();

  constructor(prompt: LivePrompt, entryApplier: EntryApplier) {
    this.prompt = prompt;
    this.entryApplier = entryApplier;
  }

  /** Resolves when frames of the prompt may reach sockets. */
  get released(): Promise<void> {
    return this.#released.promise;
  }

  /** Resolves when this process has answered the client of the prompt. */
  get answered(): Promise<void> {
    return this.#answered.promise;
  }

  /** The turn of a prompt that was taken over, whose job may have ended before jobs that are read earlier. */
  get turn(): EndTurn | undefined {
    return this.#turn;
  }

  /** A prompt has one turn: a turn that is not passed makes later prompts wait. */
  set turn(turn: EndTurn) {
    this.#turn?.pass();
    this.#turn = turn;
  }

  /** Aborted when another process takes the prompt over, and when this one closes. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  release(): void {
    this.#released.resolve();
  }

  markAnswered(): void {
    this.isAnswered = true;
    this.#answered.resolve();
  }

  /** Stops consuming events. The prompt can be followed again after `restart`. */
  stop(): void {
    this.turn?.pass();
    this.#stop.abort();
  }

  /** Stops for good, and lets nothing wait for it. */
  close(): void {
    this.isClosed = true;
    this.markAnswered();
    this.stop();
  }

  restart(): void {
    this.isReleasing = false;
    this.#stop = new AbortController();
    this.eventStream = undefined;
  }
}
