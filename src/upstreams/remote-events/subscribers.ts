import type { JobEvent } from '../../protocol/job-api.ts';
import { EventSubscriber } from '../event-subscriber.ts';
import { IS_TERMINAL, type Job, type JobStatus, type Progress } from '../../protocol/v2.ts';

/**
 * The subscribers of one job. All receive the same events; a late subscriber first receives the
 * current state.
 */
export type Subscribers = ReturnType<typeof createSubscribers>;

export function createSubscribers(options: { readonly onEmpty: () => void }) {
  const subscribers = new Set<EventSubscriber>();
  const publishedOutputs = new Set<string>();
  const latest: { status?: StatusEvent; progress?: JobEvent; preview?: JobEvent } = {};
  let isOver = false;

  function sendToAll(event: JobEvent): void {
    for (const subscriber of subscribers) {
      subscriber.push(event);
      // It may subscribe again.
      if (subscriber.isOverLimit()) subscriber.end();
    }
  }

  function publishStatus(event: StatusEvent): void {
    if (latest.status && isSameStatus(latest.status, event)) return;
    latest.status = event;
    sendToAll(event);
  }

  /** One server never sends `running`: any event of a queued job shows that it runs. */
  function inferRunning(): void {
    if (latest.status?.data.status === 'queued') {
      publishStatus({ event: 'status', data: { status: 'running' } });
    }
  }

  function publish(event: JobEvent): void {
    if (isOver) return;
    if (event.event === 'status') return publishStatus(event);
    if (event.event === 'output' && !isNew(publishedOutputs, event.data.id)) return;
    if (event.event === 'progress' && isEmptyProgress(event.data)) return;
    inferRunning();
    if (event.event === 'progress' || event.event === 'preview') latest[event.event] = event;
    sendToAll(event);
  }

  function unsubscribe(subscriber: EventSubscriber): void {
    if (subscribers.delete(subscriber) && subscribers.size === 0 && !isOver) options.onEmpty();
  }

  return {
    size: (): number => subscribers.size,
    status: (): JobStatus | undefined => latest.status?.data.status,
    /** Publishes an event of the stream. */
    publish,
    /** The stream reported the end of the job; the final state is still to be read. */
    publishEnding(): void {
      // The end alone does not show that the job ever started.
      const { status = 'queued' } = latest.status?.data ?? {};
      publish({ event: 'status', data: { status, x_ends: true } });
    },
    /** Publishes everything in a snapshot that was not published yet. */
    publishSnapshot(job: Job): void {
      const isEnd = IS_TERMINAL[job.status];
      const status = statusEventOf(job);
      if (!isEnd) publish(status);
      const { progress } = job;
      if (progress && !isEnd && !isSame(latest.progress, { event: 'progress', data: progress })) {
        publish({ event: 'progress', data: progress });
      }
      for (const output of job.outputs) publish({ event: 'output', data: output });
      if (isEnd) publish(status);
    },
    /** Ends when the job ends, when `signal` aborts, or when the subscriber stops reading. */
    subscribe(signal: AbortSignal): AsyncIterable<JobEvent> {
      const subscriber = new EventSubscriber(unsubscribe, signal);
      for (const event of [latest.status, latest.progress, latest.preview]) {
        if (event) subscriber.push(event);
      }
      subscribers.add(subscriber);
      if (isOver) subscriber.end();
      else if (signal.aborted) subscriber.handleEvent();
      return subscriber;
    },
    /** Nothing more will come. */
    end(): void {
      isOver = true;
      for (const subscriber of subscribers) subscriber.end();
    },
  };
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

function isNew(seen: Set<string>, id: string): boolean {
  if (seen.has(id)) return false;
  seen.add(id);
  return true;
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
