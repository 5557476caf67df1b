import type { Clock } from '../../lib/clock.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { dropOldestPreview } from '../unread-events.ts';
import { createJobFeed, type JobFeed } from '../job-feed.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { encodeEvent, encodePreview } from '../distributed-state/event-codec.ts';
import { fieldsOf } from '../distributed-state/run-fields.ts';
import type {
  FencedJob,
  PublishItem,
  RunStateStore,
  WriteResult,
} from '../distributed-state/run-state.ts';

/** A stored preview is written to the log of a durable Redis. */
const STORE_PREVIEW_EVERY_MS = 1000;
/** Events sent in one script. */
const MAX_BATCH = 200;

export type EventPublisherOptions = {
  readonly runState: Pick<RunStateStore, 'append'>;
  readonly fencedJob: FencedJob;
  readonly job: () => LiveJob;
  readonly clock: Clock;
  /** Called after every batch. */
  onResult(result: WriteResult): void;
  onError(error: unknown): void;
};

/**
 * Publishes the events of a job to other processes. Writes them in order, and collects further ones
 * meanwhile: while Redis is unavailable all events and the latest previews wait.
 */
export class EventPublisher {
  /** The feed of the job; its events are published. */
  readonly feed: JobFeed;
  readonly #options: EventPublisherOptions;
  readonly #waiting: PublishItem[] = [];
  readonly #snapshots: SnapshotSchedule;
  #eventCount = 0;
  #previewStoredAtMs = 0;
  #isOver = false;
  #sending: Promise<void> | undefined;
  #snapshotDelay = new AbortController();

  constructor(options: EventPublisherOptions) {
    this.#options = options;
    this.#snapshots = new SnapshotSchedule(options.clock);
    const feed = createJobFeed({ status: 'running' });
    this.feed = {
      ...feed,
      emit: (event) => {
        feed.emit(event);
        this.#publish(event);
      },
    };
  }

  /** Resolves when all events so far have been written, or never will be. */
  async drain(): Promise<void> {
    while (this.#sending) await this.#sending;
    this.#snapshotDelay.abort();
  }

  #publish(event: JobEvent): void {
    if (this.#isOver) return;
    if (event.event === 'preview') this.#addPreview(encodePreview(event));
    else {
      this.#waiting.push({ kind: 'e', n: ++this.#eventCount, text: encodeEvent(event) });
      this.#snapshots.add(event.event);
    }
    this.#startSending();
  }

  #addPreview(bytes: Buffer): void {
    const nowMs = this.#options.clock.now();
    dropOldestPreview(this.#waiting, ({ kind }) => kind === 'p');
    const isStored = Math.abs(nowMs - this.#previewStoredAtMs) >= STORE_PREVIEW_EVERY_MS;
    if (isStored) this.#previewStoredAtMs = nowMs;
    this.#waiting.push({ kind: 'p', bytes, isStored });
  }

  #startSending(): void {
    this.#sending ??= this.#send()
      .catch((error: unknown) => {
        this.#isOver = true;
        this.#options.onError(error);
      })
      .finally(() => (this.#sending = undefined));
  }

  async #send(): Promise<void> {
    // Events of the same turn join the batch.
    await Promise.resolve();
    this.#snapshotDelay.abort();
    while ((this.#waiting.length > 0 || this.#snapshots.isDue()) && !this.#isOver) {
      await this.#sendBatch();
    }
    if (!this.#snapshots.hasChanges() || this.#isOver) return;
    this.#snapshotDelay = new AbortController();
    this.#options.clock.sleep(SNAPSHOT.everyMs, this.#snapshotDelay.signal).then(
      () => this.#startSending(),
      () => {},
    );
  }

  async #sendBatch(): Promise<void> {
    const { runState, fencedJob, job } = this.#options;
    const items = this.#waiting.splice(0, MAX_BATCH);
    const fields = fieldsOf(job(), this.#snapshots.takeDue());
    const result = await runState.append(fencedJob, items, fields);
    this.#isOver = result === 'stale';
    this.#options.onResult(result);
  }
}

/**
 * Outputs and shown results so far are written as a whole, for readers of the running job. A large
 * job is not written at every change: only when it has grown by a quarter, or `everyMs` after the
 * last write.
 */
const SNAPSHOT = { alwaysUpTo: 100, growth: 1.25, everyMs: 1000 } as const;

type Growth = { count: number; writtenCount: number; writtenAtMs: number };

/** Decides which changed properties of a job are written with the next events. */
export class SnapshotSchedule {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #changed = new Set<string>();
  readonly #growing: ReadonlyMap<string, Growth> = new Map(
    ['output', 'x_node'].map((name) => [name, { count: 0, writtenCount: 0, writtenAtMs: 0 }]),
  );

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** An event of this name has changed the job. */
  add(eventName: string): void {
    this.#changed.add(eventName);
    const growth = this.#growing.get(eventName);
    if (growth) growth.count++;
  }

  hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  isDue(): boolean {
    return [...this.#changed].some((name) => this.#isDue(name));
  }

  /** The names whose properties are to be written now. */
  takeDue(): ReadonlySet<string> {
    const due = new Set([...this.#changed].filter((name) => this.#isDue(name)));
    for (const name of due) {
      this.#changed.delete(name);
      const growth = this.#growing.get(name);
      if (!growth) continue;
      growth.writtenCount = growth.count;
      growth.writtenAtMs = this.#clock.now();
    }
    return due;
  }

  #isDue(name: string): boolean {
    const growth = this.#growing.get(name);
    if (!growth) return true;
    const { count, writtenCount, writtenAtMs } = growth;
    if (count <= SNAPSHOT.alwaysUpTo || count >= SNAPSHOT.growth * writtenCount) return true;
    return Math.abs(this.#clock.now() - writtenAtMs) >= SNAPSHOT.everyMs;
  }
}
