import { coalesce } from '../../lib/concurrency.ts';
import type { JobEvent } from '../../protocol/job-api.ts';
import { stringifyJson } from '../../protocol/json.ts';
import { dropOldestPreview } from '../../job-events/unread-events.ts';
import { JobFeed } from '../../job-events/job-feed.ts';
import type { JobRun } from '../jobs/job-run.ts';
import { encodePreview, fieldsOf } from './run-codec.ts';
import type { PublishItem, RunStates } from './run-state.ts';

/** The most events that one script writes. */
const MAX_BATCH = 200;

type EventAppender = Pick<RunStates, 'append'>;

/**
 * The feed of a job that publishes its events to other processes, in order. Events that come during a write are
 * collected for the next one. While Redis is unreachable, all events and the latest previews are kept.
 */
export class EventPublisher extends JobFeed {
  readonly #runState: EventAppender;
  readonly #run: () => JobRun;
  readonly #waiting: PublishItem[] = [];
  #eventCount = 0;
  #isOver = false;
  readonly #send = coalesce(async () => {
    try {
      while (this.#waiting.length > 0 && !this.#isOver) await this.#sendBatch();
    } catch (error) {
      this.#isOver = true;
      this.#run().onPublishError(error);
    }
  });

  /** `run` gets the result of each batch. */
  constructor(runState: EventAppender, run: () => JobRun) {
    super({ status: 'running' });
    this.#runState = runState;
    this.#run = run;
  }

  override emit(event: JobEvent): void {
    super.emit(event);
    if (this.#isOver) return;
    if (event.event === 'preview') {
      dropOldestPreview(this.#waiting, ({ kind }) => kind === 'p');
      this.#waiting.push({ kind: 'p', bytes: encodePreview(event) });
    } else {
      const fields = fieldsOf(this.#run().job, event);
      this.#waiting.push({ kind: 'e', n: ++this.#eventCount, text: stringifyJson(event), fields });
    }
    void this.#send();
  }

  /** Resolves when all events so far are written, or cannot be written. */
  drain(): Promise<void> {
    return this.#send();
  }

  async #sendBatch(): Promise<void> {
    const run = this.#run();
    const result = await this.#runState.append(run.job, this.#waiting.splice(0, MAX_BATCH));
    this.#isOver = result === 'stale';
    run.applyResult(result);
  }
}
