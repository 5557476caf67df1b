import type { Clock } from '../../lib/clock.ts';
import type { JobRow } from '../../ledger/ledger.ts';
import type { Logger } from '../../observability/log.ts';
import type { StopRequest } from '../jobs/stop-request.ts';
import type { QueueStop } from '../jobs/job-queue.ts';
import { type LiveJob, type StopReason, jobFromRow } from '../jobs/live-job.ts';
import { EventPublisher } from './event-publisher.ts';
import type { FencedJob, RunStateStore, WriteResult } from '../distributed-state/run-state.ts';

export type JobRunOptions = {
  readonly row: JobRow;
  readonly claim: { readonly fence: number; readonly attempts: number };
  readonly stop: StopRequest<QueueStop>;
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
  readonly #stopRequest: StopRequest<QueueStop>;
  #isLost = false;
  #isUnpublished = false;
  #isEnding = false;

  constructor({ row, claim, stop, runState, clock, log }: JobRunOptions) {
    this.#log = log;
    this.#stopRequest = stop;
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
    stop.onRequest((reason) => this.#onStop(reason));
  }

  /** True when another process may have the job now. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** The process closes. */
  get isClosing(): boolean {
    return this.#stopRequest.reason === 'shutdown';
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
    this.job.stop.request(reason);
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
