import { coalesce } from '../../lib/coalesce.ts';
import type { Redis } from '../../lib/redis.ts';
import { IS_TERMINAL } from '../../protocol/v2.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { createJobFeed, type JobFeed } from '../job-feed.ts';
import {
  type PublishedEvent,
  type StreamPosition,
  decodeEvent,
  decodePosition,
  decodePreview,
  decodePublished,
  isAfter,
} from '../distributed-state/event-codec.ts';
import type { PubSub } from '../distributed-state/pubsub.ts';
import type { QueueKeys } from '../distributed-state/redis-keys.ts';
import type { RunStateStore } from '../distributed-state/run-state.ts';

export type EventMirrorSources = {
  readonly redis: Redis;
  readonly keys: QueueKeys;
  readonly pubsub: PubSub;
  readonly runState: Pick<RunStateStore, 'read'>;
};

const STREAM_START: StreamPosition = { fence: 0, n: 0 };

/** The events of one job that another process runs, as a feed of this process. */
export class EventMirror {
  readonly feed: JobFeed = createJobFeed({ status: 'queued' });
  /** Resolves once the mirror is subscribed and has read the stream. */
  readonly ready: Promise<void>;
  /** Reads the events of the stream after the last known position. */
  readonly catchUp = coalesce(() => this.#readStream());
  readonly #id: string;
  readonly #sources: EventMirrorSources;
  readonly #onClose: (mirror: EventMirror) => void;
  #last = STREAM_START;
  #queuePosition: number | null = null;
  #isOver = false;
  #isClosed = false;
  #subscribers = 0;
  #unsubscribe = (): void => {};

  constructor(id: string, sources: EventMirrorSources, onClose: (mirror: EventMirror) => void) {
    this.#id = id;
    this.#sources = sources;
    this.#onClose = onClose;
    this.ready = this.#open();
  }

  isOver(): boolean {
    return this.#isOver;
  }

  isWaiting(): boolean {
    return this.feed.status().status === 'queued';
  }

  /** Counts a subscriber; the mirror closes when the last one is released. */
  addSubscriber(): void {
    this.#subscribers++;
  }

  releaseSubscriber(): void {
    if (--this.#subscribers === 0) this.close();
  }

  setQueuePosition(position: number | null): void {
    if (position === null || position === this.#queuePosition || !this.isWaiting()) return;
    this.#queuePosition = position;
    this.feed.emit({ event: 'status', data: { status: 'queued', queue_position: position } });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.feed.end();
    this.#unsubscribe();
    this.#onClose(this);
  }

  async #open(): Promise<void> {
    const { redis, keys, pubsub } = this.#sources;
    this.#unsubscribe = await pubsub.subscribe(keys.eventChannel(this.#id), (message) =>
      this.#receive(decodePublished(message)),
    );
    await this.catchUp();
    if (this.#isClosed || this.#isOver) return this.#unsubscribe();
    const preview = await redis.getBuffer(keys.preview(this.#id));
    if (preview) this.feed.emit(decodePreview(preview));
    await this.#compareStatus();
  }

  async #readStream(): Promise<void> {
    const { redis, keys } = this.#sources;
    const after = `(${this.#last.fence}-${this.#last.n}`;
    const entries = await redis.xrange(keys.eventStream(this.#id), after, '+');
    for (const [at, [, text = '']] of entries) this.#apply(decodePosition(at), decodeEvent(text));
  }

  #receive(published: PublishedEvent): void {
    if (published.kind === 'preview') {
      if (!this.#isOver) this.feed.emit(published.event);
      return;
    }
    const { position, event } = published;
    const isNext = position.fence === this.#last.fence && position.n === this.#last.n + 1;
    if (isNext) return this.#apply(position, event);
    if (isAfter(position, this.#last)) void this.catchUp().catch(() => {});
  }

  #apply(position: StreamPosition, event: JobEvent): void {
    if (this.#isOver || !isAfter(position, this.#last)) return;
    this.#last = position;
    this.feed.emit(event);
    if (event.event !== 'status' || !IS_TERMINAL[event.data.status]) return;
    this.#isOver = true;
    this.close();
  }

  /** A worker may have taken the job without having published it yet. */
  async #compareStatus(): Promise<void> {
    const [run] = await this.#sources.runState.read([this.#id]);
    if (!run?.status || IS_TERMINAL[run.status] || this.#isOver) return;
    const { status, position } = run;
    this.#queuePosition = position;
    if (status === this.feed.status().status && position === null) return;
    this.feed.emit({ event: 'status', data: { status, queue_position: position } });
  }
}
