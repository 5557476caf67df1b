import { coalesce } from '../../lib/concurrency.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { dropOldestPreview } from '../unread-events.ts';
import { JobFeed } from '../job-feed.ts';
import type { WriteResult } from '../jobs/job-run.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import { encodeEvent, encodePreview } from '../distributed-state/event-codec.ts';
import { fieldsOf } from '../distributed-state/run-fields.ts';
import type { FencedJob, PublishItem, RunStates } from '../distributed-state/run-state.ts';

/** Events sent in one script. */
const MAX_BATCH = 200;

export type EventPublisherOptions = {
  readonly runState: Pick<RunStates, 'append'>;
  readonly fencedJob: FencedJob;
  readonly job: () => LiveJob;
  /** Called after every batch. */
  onResult(result: WriteResult): void;
  onError(error: unknown): void;
};

/**
 * The feed of a job whose events are published to other processes. Writes them in order, and collects further ones
 * meanwhile: while Redis is unavailable all events and the latest previews wait.
 */
export class EventPublisher extends JobFeed {
  readonly #options: EventPublisherOptions;
  readonly #waiting: PublishItem[] = [];
  #eventCount = 0;
  #isOver = false;
  readonly #send = coalesce(async () => {
    try {
      while (this.#waiting.length > 0 && !this.#isOver) await this.#sendBatch();
    } catch (error) {
      this.#isOver = true;
      this.#options.onError(error);
    }
  });

  constructor(options: EventPublisherOptions) {
    super({ status: 'running' });
    this.#options = options;
  }

  override emit(event: JobEvent): void {
    super.emit(event);
    this.#publish(event);
  }

  /** Resolves when all events so far have been written, or never will be. */
  drain(): Promise<void> {
    return this.#send();
  }

  #publish(event: JobEvent): void {
    if (this.#isOver) return;
    if (event.event === 'preview') {
      dropOldestPreview(this.#waiting, ({ kind }) => kind === 'p');
      this.#waiting.push({ kind: 'p', bytes: encodePreview(event) });
    } else {
      const fields = fieldsOf(this.#options.job(), event);
      this.#waiting.push({ kind: 'e', n: ++this.#eventCount, text: encodeEvent(event), fields });
    }
    void this.#send();
  }

  async #sendBatch(): Promise<void> {
    const { runState, fencedJob } = this.#options;
    const items = this.#waiting.splice(0, MAX_BATCH);
    const result = await runState.append(fencedJob, items);
    this.#isOver = result === 'stale';
    this.#options.onResult(result);
  }
}
