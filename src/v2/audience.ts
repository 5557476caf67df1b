import type { JobEvent } from '../wire/jobs.ts';
import { createUnreadEvents } from '../wire/unread-events.ts';
import { IS_TERMINAL, type Job, type JobStatus, type Progress } from '../wire/v2.ts';

/** The listeners of one job: all hear the same, who comes late first hears how things stand. */
export type Audience = {
  /** Ends when the job has, when `signal` aborts, or when the listener stops listening. */
  join(signal: AbortSignal): AsyncIterable<JobEvent>;
  /** Something a stream said. */
  tell(event: JobEvent): void;
  /** The job is said to be over; how it ended is yet to be shown. */
  announceEnd(): void;
  /** What a snapshot shows and nobody has heard yet. */
  show(job: Job): void;
  /** Nothing more will come. */
  end(): void;
  readonly size: () => number;
  readonly status: () => JobStatus | undefined;
};

type Seat = { readonly push: (event: JobEvent) => void; readonly end: () => void };

export function createAudience(options: { readonly onEmpty: () => void }): Audience {
  const seats = new Set<Seat>();
  const heardOutputs = new Set<string>();
  const latest: { status?: StatusEvent; progress?: JobEvent; preview?: JobEvent } = {};
  let isOver = false;

  function tellAll(event: JobEvent): void {
    for (const seat of seats) seat.push(event);
  }

  function tellStatus(event: StatusEvent): void {
    if (latest.status && isSameStatus(latest.status, event)) return;
    latest.status = event;
    tellAll(event);
  }

  /** One server never says `running`: whatever a queued job does shows that it is. */
  function noteRunning(): void {
    if (latest.status?.data.status === 'queued') {
      tellStatus({ event: 'status', data: { status: 'running' } });
    }
  }

  function tell(event: JobEvent): void {
    if (isOver) return;
    if (event.event === 'status') return tellStatus(event);
    if (event.event === 'output' && !isNew(heardOutputs, event.data.id)) return;
    if (event.event === 'progress' && isNothing(event.data)) return;
    noteRunning();
    if (event.event === 'progress' || event.event === 'preview') latest[event.event] = event;
    tellAll(event);
  }

  function leave(seat: Seat): void {
    if (seats.delete(seat) && seats.size === 0) options.onEmpty();
  }

  return {
    size: () => seats.size,
    status: () => latest.status?.data.status,
    tell,
    announceEnd() {
      // Its end alone does not say that it ever began.
      const { status = 'queued' } = latest.status?.data ?? {};
      tell({ event: 'status', data: { status, x_ends: true } });
    },
    show(job) {
      const isEnd = IS_TERMINAL[job.status];
      const status = statusOf(job);
      if (!isEnd) tell(status);
      const { progress } = job;
      if (progress && !isEnd && !isSame(latest.progress, { event: 'progress', data: progress })) {
        tell({ event: 'progress', data: progress });
      }
      for (const output of job.outputs) tell({ event: 'output', data: output });
      if (isEnd) tell(status);
    },
    join(signal) {
      const known = [latest.status, latest.progress, latest.preview];
      const line = createLine(known.filter((event) => event !== undefined));
      const seat: Seat = { push: (event) => line.push(event) || leave(seat), end: line.end };
      seats.add(seat);
      if (isOver) line.end();
      const stop = (): void => {
        line.drop();
        leave(seat);
      };
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
      return line.read(() => {
        signal.removeEventListener('abort', stop);
        leave(seat);
      });
    },
    end() {
      isOver = true;
      for (const seat of seats) seat.end();
    },
  };
}

type StatusEvent = Extract<JobEvent, { event: 'status' }>;

/** Events one listener has not taken yet: everything in order, but of previews and progress the latest only. */
function createLine(first: readonly JobEvent[]) {
  const waiting = createUnreadEvents();
  let isOver = false;
  let wake: () => void = () => {};
  const end = (): void => {
    isOver = true;
    wake();
  };
  for (const event of first) waiting.push(event);
  return {
    end,
    /** False when the listener is hopelessly behind: it is let go with what is held, and may join again. */
    push(event: JobEvent): boolean {
      waiting.push(event);
      if (waiting.isTooMuch()) end();
      wake();
      return !isOver;
    },
    drop(): void {
      waiting.clear();
      end();
    },
    async *read(onDone: () => void): AsyncGenerator<JobEvent> {
      try {
        for (;;) {
          const event = waiting.shift();
          if (event) yield event;
          else if (isOver) return;
          else await new Promise<void>((resolve) => (wake = resolve));
        }
      } finally {
        onDone();
      }
    },
  };
}

/** What a snapshot says of the job's state. */
export function statusOf(job: Job): StatusEvent {
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

/** One server answers every poll of a running job with zeros; they must not replace what a stream said. */
function isNothing({ value, nodes_total, current_node, step }: Progress): boolean {
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
