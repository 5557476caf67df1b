import { completesWithin } from '../../lib/completes-within.ts';
import { reached } from '../../lib/crash-point.ts';
import { yieldEvery } from '../../lib/event-loop.ts';
import { type JobEvent, type Result, isGone, ok } from '../../protocol/job-api.ts';
import { IS_TERMINAL, type Job, type Output } from '../../protocol/v2.ts';
import type { ProgressInput } from '../../translate/progress/progress-state.ts';
import type { LivePrompt } from '../live-prompt.ts';
import type { PromptPorts } from '../ports.ts';
import { LeadershipLost } from '../prompt-event-log.ts';
import type { HistoryPruner } from '../state/history-pruner.ts';
import { toOutcome } from '../state/outcome.ts';
import { endsJob, isKnown, showsActivity, startsJob } from './progress-input-kinds.ts';
import type { EndTurn } from './end-order.ts';
import type { EndingPrompts } from './ending-prompts.ts';
import type { FollowedPrompt } from './followed-prompt.ts';
import { type ResendLost, placeholderJob, wasLostWhileQueued } from './lost-job.ts';
import { OutputNames } from './output-names.ts';
import { UploadNamer } from './upload-namer.ts';
import { retry } from '../../lib/retry.ts';

/** The end of a prompt that has no job to report it. */
export type EndWithoutJob =
  | { readonly kind: 'canceled' }
  | { readonly kind: 'failed'; readonly error: NonNullable<Job['error']> }
  | { readonly kind: 'lost'; readonly reason: string };

export type JobConsumerOptions = {
  readonly ports: PromptPorts;
  readonly endingPrompts: EndingPrompts;
  readonly pruner: HistoryPruner;
  readonly resendLost: ResendLost;
};

/** The number of events of one prompt that are consumed before the event loop gets its turn. */
const EVENTS_PER_TURN = 32;
/** How long a start is delayed when it arrives before the start of an earlier job. */
const REORDER_WINDOW_MS = 50;
/** The wait before the history is written again: a full disk may have space later. */
const HISTORY_RETRY_MS = { first: 1000, last: 1000 } as const;
/** The longest wait for a due input, in case the clock was set back. */
const MAX_IDLE_MS = 5000;

/**
 * First stage of the progress pipeline: receives the events of one job, appends them to the log of
 * its prompt, and writes the history when the job has ended.
 */
export class JobConsumer {
  readonly #prompt: LivePrompt;
  readonly #entryApplier: FollowedPrompt['entryApplier'];
  readonly #options: JobConsumerOptions;
  readonly #ports: PromptPorts;
  readonly #outputNames: OutputNames;
  readonly #uploadNamer: UploadNamer;
  readonly #turn: EndTurn | undefined;
  readonly #signal: AbortSignal;
  #lastQueuedAtMs: number | undefined;
  #hasBegun = false;

  constructor({ prompt, entryApplier, turn, signal }: FollowedPrompt, options: JobConsumerOptions) {
    this.#prompt = prompt;
    this.#entryApplier = entryApplier;
    this.#options = options;
    this.#ports = options.ports;
    this.#turn = turn;
    this.#signal = signal;
    this.#outputNames = new OutputNames(prompt, this.#ports);
    this.#uploadNamer = new UploadNamer(prompt, this.#ports.records.prompts);
  }

  /** Consumes an event stream. */
  async consume(stream: AsyncIterable<JobEvent>): Promise<void> {
    const events = stream[Symbol.asyncIterator]();
    const pause = yieldEvery(EVENTS_PER_TURN);
    let next = events.next();
    for (;;) {
      if (!(await this.#comesBeforeIdle(next))) {
        await this.#receive({ kind: 'idle', atMs: this.#ports.policy.clock.now() });
        continue;
      }
      const event = await next;
      if (event.done) return;
      await this.#receiveEvent(await this.#uploadNamer.inEvent(event.value));
      await pause();
      next = events.next();
    }
  }

  /**
   * Reads the job, unless the stream has brought its end. True when it is followed no longer: it has
   * ended, or was lost and another job takes its place.
   */
  async poll(jobId: string): Promise<boolean> {
    if (!this.#prompt.isEnding)
      await this.#receiveRead(await this.#ports.jobs.api.get(this.#prompt.caller, jobId));
    return this.#prompt.isEnding || this.#prompt.jobId !== jobId;
  }

  async #receiveRead(read: Result<Job>): Promise<void> {
    const { clock } = this.#ports.policy;
    const job = read.ok ? read.value : undefined;
    const isMissing = read.ok ? read.value.status === 'expired' : isGone(read.error);
    // One upstream forgets jobs that are deleted from its queue: a job that was cancelled here is
    // not lost.
    if (isMissing && this.#prompt.cancelRequested) {
      return this.#receiveJob({ ...(job ?? placeholderJob(this.#prompt)), status: 'canceled' });
    }
    if (isMissing || (job && wasLostWhileQueued(job))) {
      const lost = { job, lastQueuedAtMs: this.#lastQueuedAtMs };
      if ((await this.#options.resendLost(this.#prompt, lost)) !== 'final') return;
    } else if (job) this.#lastQueuedAtMs = clock.now();
    if (read.ok) await this.#receiveJob(read.value);
    else if (isMissing)
      await this.#receive({ kind: 'lost', reason: read.error.message, atMs: clock.now() });
  }

  async endWithoutJob(ending: EndWithoutJob): Promise<void> {
    const atMs = this.#ports.policy.clock.now();
    if (ending.kind === 'lost') return this.#receive({ ...ending, atMs });
    const error = ending.kind === 'failed' ? ending.error : null;
    const job = { ...placeholderJob(this.#prompt), status: ending.kind, error };
    await this.#receive({ kind: 'settled', job, files: new Map(), atMs });
  }

  /** Writes the history of a prompt whose end is in its log, then sends v1's last frame. */
  async finish(): Promise<void> {
    const { endingPrompts, pruner } = this.#options;
    const { records, frames, policy } = this.#ports;
    const { durability, history } = policy;
    const { key, promptId, caller } = this.#prompt;
    const state = this.#entryApplier.state();
    const outcome = await toOutcome(this.#prompt, state, history.graphBytes);
    await this.#retryWrite(() => records.prompts.finish(key, outcome, durability));
    reached('after-history');
    await this.#retryWrite(() => records.eventLog.append(key, { kind: 'recorded' }));
    endingPrompts.finish(key);
    pruner.noteStored(outcome.entryJson.length);
    frames.onEnded?.(outcome.statusWord);
    const { startedAtMs, endedAtMs } = state;
    const ms = Math.max(0, (endedAtMs ?? 0) - (startedAtMs ?? endedAtMs ?? 0));
    const facts = { event: 'prompt.finished', user: caller.user, promptId, ms };
    frames.log.info(facts, 'prompt ended');
  }

  /** False when an `idle` input is due before the next event. */
  async #comesBeforeIdle(next: Promise<unknown>): Promise<boolean> {
    const dueMs = this.#entryApplier.nextDueMs();
    if (dueMs === null) return true;
    const waitMs = Math.max(0, dueMs - this.#ports.policy.clock.now());
    return completesWithin(Math.min(waitMs, MAX_IDLE_MS), next);
  }

  async #receiveEvent(event: JobEvent): Promise<void> {
    const atMs = this.#ports.policy.clock.now();
    if (event.event === 'status') {
      const { status, job } = event.data;
      if (status === 'queued') this.#lastQueuedAtMs = atMs;
      if (job && IS_TERMINAL[status]) return this.#receiveRead(ok(job));
    }
    if (event.event === 'output') return this.#receiveOutput(event.data, atMs);
    // Only reading the state parses the graph: a waiting prompt has only the text of its graph.
    if (event.event !== 'progress' || !isKnown(event, this.#entryApplier.state())) {
      return this.#receive({ kind: 'event', event, atMs });
    }
    this.#options.endingPrompts.finish(this.#prompt.key);
  }

  async #receiveOutput(output: Output, atMs: number): Promise<void> {
    const file = await this.#outputNames.name(output);
    if (file === undefined) return;
    reached('after-output-named');
    await this.#receive({ kind: 'output', output, file, atMs });
  }

  async #receiveJob(received: Job): Promise<void> {
    const job = await this.#uploadNamer.inJob(received);
    await this.#outputNames.removeReplaced(job);
    if (this.#ports.policy.traits.isService && this.#prompt.isTakenOver) {
      await this.#outputNames.removeGone(job);
    }
    const kind = IS_TERMINAL[job.status] ? 'settled' : 'snapshot';
    const files = await this.#outputNames.nameAll(job);
    await this.#receive({ kind, job, files, atMs: this.#ports.policy.clock.now() });
  }

  async #receive(input: ProgressInput): Promise<void> {
    const { endingPrompts } = this.#options;
    const { key, caller } = this.#prompt;
    if (endsJob(input)) {
      endingPrompts.begin(caller.user, key);
      await this.#turn?.whenEarlierPassed();
    } else {
      this.#turn?.pass();
      // Any other input shows that the prompt has not ended after all.
      endingPrompts.finish(key);
      if (startsJob(input) && this.#prompt.status === 'queued') await this.#waitForTurn();
    }
    const { records, policy } = this.#ports;
    if (policy.traits.isService && !this.#hasBegun && showsActivity(input)) {
      // No process sends a job again whose record says that it has started.
      this.#hasBegun = true;
      await records.prompts.begin(key, input.atMs);
    }
    await records.eventLog.append(key, { kind: 'input', input });
    if (this.#prompt.isEnding) await this.finish();
  }

  /**
   * Waits for the start of earlier jobs: streams that report at the same moment are read in any
   * order.
   */
  async #waitForTurn(): Promise<void> {
    const { frames, policy } = this.#ports;
    if (frames.livePrompts.hasEarlierQueued(this.#prompt))
      await policy.clock.sleep(REORDER_WINDOW_MS);
    await this.#options.endingPrompts.whenFinished(this.#prompt.caller.user);
  }

  /**
   * Repeats a write until it succeeds. `LeadershipLost` rejects: another process leads the prompt.
   */
  async #retryWrite(write: () => Promise<void>): Promise<void> {
    const { frames, policy } = this.#ports;
    const { promptId, caller } = this.#prompt;
    const onError = (error: unknown): void => {
      if (error instanceof LeadershipLost) throw error;
      const facts = { event: 'prompt.history_failed', err: error, user: caller.user, promptId };
      frames.log.error(facts, 'could not record the end of a prompt; retrying');
    };
    const { clock } = policy;
    await retry(write, { clock, waitMs: HISTORY_RETRY_MS, signal: this.#signal, onError });
  }
}
