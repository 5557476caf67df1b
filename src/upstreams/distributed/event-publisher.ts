import { createJobFeed, type JobFeed } from '../job-feed.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { dropOldestPreview } from '../waiting-previews.ts';
import { encodeEvent, encodePreview } from './event-codec.ts';
import {
  type WriteResult,
  type FencedJob,
  type PublishItem,
  type RunStateStore,
  fieldsOf,
} from './run-state.ts';

/** A stored preview is written to the log of a durable Redis. */
const STORE_PREVIEW_EVERY_MS = 1000;
/** Events sent in one script. */
const MAX_BATCH = 200;
/**
 * Outputs and shown results so far are written as a whole, for readers of the running job. A large
 * job is not written at every change: only when it has grown by a quarter, or `everyMs` after the
 * last write.
 */
const SNAPSHOT = { uncounted: 100, growth: 1.25, everyMs: 1000 } as const;

/** The feed of a job, published to other processes. */
export type EventPublisher = {
  readonly feed: JobFeed;
  /** Resolves when all events so far have been written, or never will be. */
  drain(): Promise<void>;
};

export type EventPublisherOptions = {
  readonly runState: Pick<RunStateStore, 'append'>;
  readonly fencedJob: FencedJob;
  readonly job: () => LiveJob;
  readonly clock: () => number;
  /** Called after every batch. */
  onResult(result: WriteResult): void;
  onError(error: unknown): void;
};

/**
 * Writes events in order, and collects further ones meanwhile: while Redis is unavailable all
 * events and the latest previews wait.
 */
export function createEventPublisher(deps: EventPublisherOptions): EventPublisher {
  const feed = createJobFeed({ status: 'running' });
  const waiting: PublishItem[] = [];
  const changed = new Set<string>();
  let eventCount = 0;
  let previewStoredAtMs = 0;
  let isOver = false;
  let sending: Promise<void> | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  const snapshots = {
    output: { count: 0, writtenCount: 0, writtenAtMs: 0 },
    x_node: { count: 0, writtenCount: 0, writtenAtMs: 0 },
  };

  function isSnapshotDue(name: string): boolean {
    if (name !== 'output' && name !== 'x_node') return true;
    const { count, writtenCount, writtenAtMs } = snapshots[name];
    const isSmall = count <= SNAPSHOT.uncounted || count >= SNAPSHOT.growth * writtenCount;
    return isSmall || Math.abs(deps.clock() - writtenAtMs) >= SNAPSHOT.everyMs;
  }

  function takeDueFields(): ReadonlySet<string> {
    const due = new Set([...changed].filter(isSnapshotDue));
    for (const name of due) {
      changed.delete(name);
      if (name !== 'output' && name !== 'x_node') continue;
      snapshots[name].writtenCount = snapshots[name].count;
      snapshots[name].writtenAtMs = deps.clock();
    }
    return due;
  }

  async function send(): Promise<void> {
    // Events of the same turn join the batch.
    await Promise.resolve();
    clearTimeout(retryTimer);
    while ((waiting.length > 0 || [...changed].some(isSnapshotDue)) && !isOver) {
      const items = waiting.splice(0, MAX_BATCH);
      const fields = fieldsOf(deps.job(), takeDueFields());
      const result = await deps.runState.append(deps.fencedJob, items, fields);
      isOver = result === 'stale';
      deps.onResult(result);
    }
    if (changed.size > 0 && !isOver)
      retryTimer = setTimeout(startSending, SNAPSHOT.everyMs).unref();
  }

  function startSending(): void {
    sending ??= send()
      .catch((error: unknown) => {
        isOver = true;
        deps.onError(error);
      })
      .finally(() => (sending = undefined));
  }

  function emit(event: JobEvent): void {
    feed.emit(event);
    if (isOver) return;
    if (event.event === 'preview') {
      dropOldestPreview(waiting, ({ kind }) => kind === 'p');
      const isStored = Math.abs(deps.clock() - previewStoredAtMs) >= STORE_PREVIEW_EVERY_MS;
      if (isStored) previewStoredAtMs = deps.clock();
      waiting.push({ kind: 'p', bytes: encodePreview(event), isStored });
    } else {
      waiting.push({ kind: 'e', n: ++eventCount, text: encodeEvent(event) });
      changed.add(event.event);
      if (event.event === 'output' || event.event === 'x_node') snapshots[event.event].count++;
    }
    startSending();
  }

  return {
    feed: { ...feed, emit },
    async drain() {
      while (sending) await sending;
      clearTimeout(retryTimer);
    },
  };
}
