import type { JobEvent } from '../../protocol/job-api.ts';
import { EventSubscriber } from '../event-subscriber.ts';
import { IS_TERMINAL, type Job, type JobStatus, type Progress } from '../../protocol/v2.ts';

/** Of one job; its end names the others. */
const MAX_OUTPUTS = 100_000;

/**
 * The subscribers of one job. All receive the same events; a late subscriber first receives the
 * current state. A class, and its sets made late: thousands of jobs wait at a time.
 */
export class Subscribers {
  readonly #onEmpty: () => void;
  readonly #subscribers = new Set<EventSubscriber>();
  #publishedOutputs: Set<string> | undefined;
  #status: StatusEvent | undefined;
  #progress: JobEvent | undefined;
  #preview: JobEvent | undefined;
  #isOver = false;

  constructor(onEmpty: () => void) {
    this.#onEmpty = onEmpty;
  }

  status(): JobStatus | undefined {
    return this.#status?.data.status;
  }

  /** Publishes an event of the stream. */
  publish(event: JobEvent): void {
    if (this.#isOver) return;
    if (event.event === 'status') return this.#publishStatus(event);
    if (event.event === 'output' && !this.#isNewOutput(event.data.id)) return;
    if (event.event === 'progress' && isEmptyProgress(event.data)) return;
    this.#inferRunning();
    if (event.event === 'progress') this.#progress = event;
    if (event.event === 'preview') this.#preview = event;
    this.#sendToAll(event);
  }

  /** The stream reported the end of the job; the final state is still to be read. */
  publishEnding(): void {
    // The end alone does not show that the job ever started.
    this.publish({ event: 'status', data: { status: this.status() ?? 'queued', x_ends: true } });
  }

  /** Publishes everything in a snapshot that was not published yet. */
  publishSnapshot(job: Job): void {
    const isEnd = IS_TERMINAL[job.status];
    const status = statusEventOf(job);
    if (!isEnd) this.publish(status);
    const { progress } = job;
    if (progress && !isEnd && !isSame(this.#progress, { event: 'progress', data: progress })) {
      this.publish({ event: 'progress', data: progress });
    }
    for (const output of job.outputs) this.publish({ event: 'output', data: output });
    if (isEnd) this.publish(status);
  }

  /** Ends when the job ends, when `signal` aborts, or when the subscriber stops reading. */
  subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
    const subscriber = new EventSubscriber(this, signal);
    for (const event of [this.#status, this.#progress, this.#preview]) {
      if (event) subscriber.push(event);
    }
    this.#subscribers.add(subscriber);
    if (this.#isOver) subscriber.end();
    else if (signal.aborted) subscriber.handleEvent();
    return subscriber;
  }

  remove(subscriber: EventSubscriber): void {
    const isRemoved = this.#subscribers.delete(subscriber);
    if (isRemoved && this.#subscribers.size === 0 && !this.#isOver) this.#onEmpty();
  }

  /** Nothing more will come. */
  end(): void {
    this.#isOver = true;
    for (const subscriber of this.#subscribers) subscriber.end();
  }

  #publishStatus(event: StatusEvent): void {
    if (this.#status && isSameStatus(this.#status, event)) return;
    this.#status = event;
    this.#sendToAll(event);
  }

  /** One server never sends `running`: any event of a queued job shows that it runs. */
  #inferRunning(): void {
    if (this.status() === 'queued') {
      this.#publishStatus({ event: 'status', data: { status: 'running' } });
    }
  }

  #isNewOutput(id: string): boolean {
    this.#publishedOutputs ??= new Set();
    if (this.#publishedOutputs.has(id) || this.#publishedOutputs.size >= MAX_OUTPUTS) return false;
    this.#publishedOutputs.add(id);
    return true;
  }

  #sendToAll(event: JobEvent): void {
    for (const subscriber of this.#subscribers) {
      subscriber.push(event);
      // It may subscribe again.
      if (subscriber.isOverLimit()) subscriber.end();
    }
  }
}

type StatusEvent = Extract<JobEvent, { event: 'status' }>;

/** The status event of a snapshot. */
export function statusEventOf(job: Job): StatusEvent {
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
 * One server answers every poll of a running job with zeros; they must not replace progress from
 * the stream.
 */
function isEmptyProgress({ value, nodes_total, current_node, step }: Progress): boolean {
  return value === 0 && nodes_total === 0 && !current_node && !step;
}

function isSameStatus({ data: one }: StatusEvent, { data: other }: StatusEvent): boolean {
  const key = ({
    status,
    queue_position = null,
    x_cached_nodes = [],
    x_ends = false,
  }: StatusEvent['data']) => JSON.stringify([status, queue_position, x_cached_nodes, x_ends]);
  return key(one) === key(other);
}

function isSame(one: JobEvent | undefined, other: JobEvent): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
