import { createDeferred } from '../../lib/concurrency.ts';
import type { JobEvent, Result } from '../../protocol/job-api.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { EntryApplier } from './apply-entry.ts';
import type { EndTurn } from './end-order.ts';

/** A prompt that this process follows, and the conditions before its events are consumed. */
export class FollowedPrompt {
  readonly prompt: LivePrompt;
  readonly entryApplier: EntryApplier;
  /** Resolves when this process has answered the client of the prompt. */
  readonly answered = createDeferred();
  /** Resolves when frames of the prompt may reach sockets. */
  readonly released = createDeferred();
  /** True while this process tries to append that the prompt is released, and when it did. */
  isReleasing = false;
  /** True when no further entries are applied. */
  isClosed = false;
  /** Entries of another process wait for this promise while the client is being answered here. */
  blockedUntil: Promise<unknown> | undefined;
  /** Opened as soon as the job is known. */
  eventStream: Promise<Result<AsyncIterable<JobEvent>>> | undefined;
  /** The turn of a prompt that was taken over, whose job may have ended before jobs that are read earlier. */
  turn: EndTurn | undefined;
  #stop = new AbortController();

  constructor(prompt: LivePrompt, entryApplier: EntryApplier) {
    this.prompt = prompt;
    this.entryApplier = entryApplier;
  }

  /** Aborted when another process takes the prompt over, and when this one closes. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Stops consuming events. */
  stop(): void {
    this.turn?.pass();
    this.#stop.abort();
  }

  /** Stops for good, and lets nothing wait for it. */
  close(): void {
    this.isClosed = true;
    this.answered.resolve();
    this.stop();
  }

  /** Stops, so that the prompt can be followed again. */
  restart(): void {
    this.stop();
    this.isReleasing = false;
    this.#stop = new AbortController();
    this.eventStream = undefined;
  }
}
