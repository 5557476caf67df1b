import type { Clock } from '../../lib/clock.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { QueueStop } from '../jobs/job-queue.ts';
import { type LiveJob, type StopReason, jobFromRow } from '../jobs/live-job.ts';
import { EventPublisher } from './event-publisher.ts';
import type { FencedJob, RunStateStore, WriteResult } from '../distributed-state/run-state.ts';

export type JobRunOptions = {
  readonly row: JobRow;
  readonly claim: { readonly fence: number; readonly attempts: number };
  /** Aborts with a `QueueStop`. */
  readonly signal: AbortSignal;
  readonly runState: Pick<RunStateStore, 'append'>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** One run of a job in this process, under the fencing token of its claim. */
export class JobRun {
  readonly fencedJob: FencedJob;
  readonly job: LiveJob;
  readonly #publisher: EventPublisher;
  readonly #log: Logger;
  readonly #signal: AbortSignal;
  #isLost = false;
  #isUnpublished = false;
  #isEnding = false;

  constructor({ row, claim, signal, runState, clock, log }: JobRunOptions) {
    this.#log = log;
    this.#signal = signal;
    this.fencedJob = { id: row.id, fence: claim.fence };
    this.#publisher = new EventPublisher({
      runState,
      fencedJob: this.fencedJob,
      clock,
      job: () => this.job,
      onResult: (result) => this.#applyResult(result),
      onError: (error) => this.#onPublishError(error),
    });
    this.job = {
      ...jobFromRow(row),
      status: 'running',
      startedAtMs: clock.now(),
      attempts: claim.attempts,
      feed: this.#publisher.feed,
    };
    if (signal.aborted) this.#onStop(signal.reason as QueueStop);
    signal.addEventListener('abort', () => this.#onStop(signal.reason as QueueStop));
  }

  /** True when another process may have the job now. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The process closes. */
  get isClosing(): boolean {
    return this.#signal.aborted && this.#signal.reason === ('shutdown' satisfies QueueStop);
  }

  /** Some events could not be published: subscribers lack events that precede the end. */
  get isUnpublished(): boolean {
    return this.#isUnpublished;
  }

  #onStop(reason: QueueStop): void {
    if (reason === 'lost') this.onLeaseLost();
    else if (reason === 'canceled') this.#cancel();
    else this.#stop(reason);
  }

  #stop(reason: StopReason): void {
    this.job.stop.abort(reason);
  }

  #cancel(): void {
    const { job } = this;
    this.#stop('canceled');
    if (job.status !== 'running' || this.#isEnding) return;
    job.status = 'canceling';
    job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
  }

  /** The lease of the job is lost: another process may have it now. */
  onLeaseLost(): void {
    if (!this.#isLost) {
      this.#log.warn(
        { event: 'job.lease_lost', job: this.job.id },
        'the lease of a job is lost: another process may take the job over',
      );
    }
    this.#isLost = true;
    this.#stop('shutdown');
  }

  /** The nodes have ended: resolves when all events so far have been written, or never will be. */
  async drain(): Promise<void> {
    this.#isEnding = true;
    await this.#publisher.drain();
  }

  #applyResult(result: WriteResult): void {
    if (result === 'stale') this.onLeaseLost();
    if (result === 'cancel') this.#cancel();
  }

  #onPublishError(error: unknown): void {
    this.#log.error(
      { event: 'job.publish_failed', err: error, job: this.job.id },
      'could not publish events of a job',
    );
    this.#isUnpublished = true;
    this.#stop('shutdown');
  }
}
