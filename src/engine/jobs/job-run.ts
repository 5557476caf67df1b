import type { Logger } from '../../observability/log.ts';
import type { QueueStop } from './job-queue.ts';
import type { LiveJob, StopReason } from './live-job.ts';

/** `stale`: another process has the job. `cancel`: a client has asked to cancel it. */
export type WriteResult = 'ok' | 'cancel' | 'stale';

export type JobRunOptions = {
  readonly job: LiveJob;
  /** Its reason is a `QueueStop`. */
  readonly stop: AbortSignal;
  /** Resolves when all events so far were published, or never will be. */
  readonly drain: () => Promise<void>;
  readonly log: Logger;
};

/** One run of a job in this process. */
export class JobRun {
  readonly job: LiveJob;
  /** True when another process may have the job now. */
  isLost = false;
  /** True when some events could not be published: subscribers lack events before the end. */
  isUnpublished = false;
  readonly #options: JobRunOptions;
  #isEnding = false;

  constructor(options: JobRunOptions) {
    this.job = options.job;
    this.#options = options;
    const { stop } = options;
    const onStop = (): void => this.#onStop(stop.reason as QueueStop);
    if (stop.aborted) onStop();
    else stop.addEventListener('abort', onStop);
  }

  /** True when the process is closing. */
  get isClosing(): boolean {
    return this.#options.stop.reason === 'shutdown';
  }

  #onStop(reason: QueueStop): void {
    if (reason === 'lost') this.onLeaseLost();
    else if (reason === 'canceled') this.#cancel();
    else this.job.stop.abort(reason);
  }

  #cancel(): void {
    const { job } = this;
    job.stop.abort('canceled' satisfies StopReason);
    if (job.status !== 'running' || this.#isEnding) return;
    job.status = 'canceling';
    job.feed.emit({ event: 'status', data: { ...job.feed.status(), status: 'canceling' } });
  }

  /** Stops the run: the lease of the job is lost, so another process may have the job now. */
  onLeaseLost(): void {
    if (!this.isLost) {
      this.#options.log.warn(
        { event: 'job.lease_lost', job: this.job.id },
        'the lease of a job is lost: another process may take the job over',
      );
    }
    this.isLost = true;
    this.job.stop.abort('shutdown' satisfies StopReason);
  }

  /**
   * Called when the nodes have ended. Resolves when all events so far were published, or never will
   * be.
   */
  async drain(): Promise<void> {
    this.#isEnding = true;
    await this.#options.drain();
  }

  /** Applies the answer to written events. */
  applyResult(result: WriteResult): void {
    if (result === 'stale') this.onLeaseLost();
    if (result === 'cancel') this.#cancel();
  }

  onPublishError(error: unknown): void {
    this.#options.log.error(
      { event: 'job.publish_failed', err: error, job: this.job.id },
      'could not publish events of a job',
    );
    this.isUnpublished = true;
    this.job.stop.abort('shutdown' satisfies StopReason);
  }
}
