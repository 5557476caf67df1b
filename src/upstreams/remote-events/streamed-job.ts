import type { JobEvent } from '../../protocol/job-api.ts';
import type { Job, NodeUi, Output, Progress } from '../../protocol/v2.ts';

/**
 * Collects the events of a job that another Holdover runs, so that a succeeded job is known without
 * a read: the terminal status of Holdover 0.1 does not include the job. The stream is complete when
 * it begins with `queued`: nothing has happened to the job before, and a Holdover leaves out only
 * previews and outdated progress. A job that ran twice has outputs of the first run among its
 * events; it has begun twice.
 */
export class StreamedJob {
  readonly #submitted: Job;
  readonly #outputs: Output[] = [];
  readonly #ui: { [nodeId: string]: NodeUi } = {};
  #phase: 'opening' | 'queued' | 'running' | 'incomplete' = 'opening';
  #cachedNodes: readonly string[] | undefined;
  #progress: Progress | null = null;

  private constructor(submitted: Job) {
    this.#submitted = submitted;
  }

  /**
   * Returns a collector; `undefined` unless the job is the answer to a submission that another
   * Holdover accepted.
   */
  static of(latest: Job | undefined): StreamedJob | undefined {
    if (latest?.status !== 'queued' || latest.x_workflow === undefined) return undefined;
    const { x_workflow: _, ...submitted } = latest;
    return new StreamedJob(submitted);
  }

  /**
   * Adds the next event of the stream. Returns the job when the event ends it with success and all
   * events were received. The times are those of the submission.
   */
  receive(event: JobEvent): Job | undefined {
    if (event.event === 'status') return this.#receiveStatus(event.data);
    if (this.#phase === 'opening') this.#phase = 'incomplete';
    if (event.event === 'progress') this.#progress = event.data;
    if (event.event === 'output') {
      const { x_with_step: _, ...output } = event.data;
      this.#outputs.push(output);
    }
    if (event.event === 'x_node' && event.data.ui) this.#ui[event.data.node_id] = event.data.ui;
    return undefined;
  }

  #receiveStatus({ status, x_cached_nodes: cached }: StatusData): Job | undefined {
    const isComplete = this.#phase === 'running' && this.#cachedNodes !== undefined;
    if (status === 'succeeded' && isComplete) return this.#succeeded();
    const hasBegunAgain = cached !== undefined && this.#cachedNodes !== undefined;
    this.#cachedNodes ??= cached;
    if (status === 'queued' && (this.#phase === 'opening' || this.#phase === 'queued')) {
      this.#phase = 'queued';
    } else {
      const follows = this.#phase === 'queued' || this.#phase === 'running';
      this.#phase = status === 'running' && follows && !hasBegunAgain ? 'running' : 'incomplete';
    }
    return undefined;
  }

  #succeeded(): Job {
    return {
      ...this.#submitted,
      status: 'succeeded',
      queue_position: null,
      progress: this.#progress,
      outputs: this.#outputs,
      ...(this.#cachedNodes && { x_cached_nodes: this.#cachedNodes }),
      x_ui: this.#ui,
    };
  }
}

type StatusData = Extract<JobEvent, { event: 'status' }>['data'];
