import type { JobEvent, JobEventData, JobEventOf } from '../../protocol/job-api.ts';
import { JobFeed } from '../../job-events/job-feed.ts';
import { IS_TERMINAL, type Job, type JobStatus, type Progress } from '../../protocol/v2.ts';

/** The number of outputs of one job that are published. The end of the job names the others. */
const MAX_OUTPUTS = 100_000;

/** The subscribers of one job. All get the same events, each event once. */
export class Subscribers {
  readonly #feed: JobFeed;
  /** Created when needed: thousands of jobs wait at a time. */
  #publishedOutputs: Set<string> | undefined;

  constructor(onEmpty: () => void) {
    this.#feed = new JobFeed(undefined, onEmpty);
  }

  status(): JobStatus | undefined {
    return this.#feed.status()?.status;
  }

  /** Publishes an event of the stream. */
  publish(event: JobEvent): void {
    if (event.event === 'status') return this.#publishStatus(event);
    if (event.event === 'output' && !this.#isNewOutput(event.data.id)) return;
    if (event.event === 'progress' && isEmptyProgress(event.data)) return;
    // One server never sends `running`: any event of a queued job shows that it runs.
    if (this.status() === 'queued')
      this.#feed.emit({ event: 'status', data: { status: 'running' } });
    this.#feed.emit(event);
  }

  /**
   * Publishes that the stream has reported the end of the job. The final state is still to be read.
   */
  publishEnding(): void {
    // The end alone does not show that the job ever started.
    this.publish({ event: 'status', data: { status: this.status() ?? 'queued', x_ends: true } });
  }

  /** Publishes everything in a snapshot that was not published yet. */
  publishSnapshot(job: Job): void {
    const isEnd = IS_TERMINAL[job.status];
    const status = statusEventOf(job);
    if (!isEnd) this.publish(status);
    if (job.progress && !isEnd) this.#publishPolled(job.progress);
    for (const output of job.outputs) this.publish({ event: 'output', data: output });
    if (isEnd) this.publish(status);
  }

  subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
    return this.#feed.subscribe(signal);
  }

  /** Ends the subscriptions. */
  end(): void {
    this.#feed.end();
  }

  #publishPolled(progress: Progress): void {
    const polled = { ...progress, x_polled: true };
    const latest = { ...this.#feed.progress(), x_polled: true };
    if (JSON.stringify(latest) !== JSON.stringify(polled))
      this.publish({ event: 'progress', data: polled });
  }

  #publishStatus(event: JobEventOf<'status'>): void {
    const latest = this.#feed.status();
    if (!latest || !isSameStatus(latest, event.data)) this.#feed.emit(event);
  }

  #isNewOutput(id: string): boolean {
    this.#publishedOutputs ??= new Set();
    if (this.#publishedOutputs.has(id) || this.#publishedOutputs.size >= MAX_OUTPUTS) return false;
    this.#publishedOutputs.add(id);
    return true;
  }
}

/** Returns the status event of a snapshot. */
export function statusEventOf(job: Job): JobEventOf<'status'> {
  const { status, queue_position, x_cached_nodes } = job;
  return {
    event: 'status',
    data: {
      status,
      ...(queue_position !== null && { queue_position }),
      ...(x_cached_nodes && { x_cached_nodes }),
    },
  };
}

/**
 * True for progress of zeros: one server answers every poll of a running job with these. They must
 * not replace progress from the stream.
 */
function isEmptyProgress({ value, nodes_total, current_node, step }: Progress): boolean {
  return value === 0 && nodes_total === 0 && !current_node && !step;
}

function isSameStatus(one: JobEventData['status'], other: JobEventData['status']): boolean {
  const key = ({
    status,
    queue_position = null,
    x_cached_nodes = [],
    x_ends = false,
  }: JobEventData['status']) => JSON.stringify([status, queue_position, x_cached_nodes, x_ends]);
  return key(one) === key(other);
}
