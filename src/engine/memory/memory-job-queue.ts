import { FairQueue } from '../jobs/fair-order.ts';
import type {
  JobQueue,
  JobQueueWorker,
  JobQueueWorkerOptions,
  QueuedJob,
  QueueStop,
  WaitingJobs,
} from '../jobs/job-queue.ts';

/** The queue of a single process. Its calls take effect before they return. */
export class MemoryJobQueue<T extends QueuedJob> implements JobQueue {
  readonly #queue = new FairQueue<T>();
  readonly #onOrder: (waiting: readonly T[]) => void;
  /** The jobs that run. */
  readonly #runs = new Map<
    string,
    { readonly stop: AbortController; readonly end: Promise<void> }
  >();
  #startWaitingJobs = (): void => {};

  /** `onOrder` is called after every change with all waiting jobs, in order. */
  constructor(onOrder: (waiting: readonly T[]) => void = () => {}) {
    this.#onOrder = onOrder;
  }

  async add(jobs: readonly T[]): Promise<void> {
    for (const job of jobs) if (!this.#queue.has(job.id)) this.#queue.add(job);
    this.#orderChanged();
    this.#schedule();
  }

  async remove(id: string): Promise<boolean> {
    const isRemoved = this.#queue.remove(id);
    if (isRemoved) this.#orderChanged();
    return isRemoved;
  }

  async cancel(id: string): Promise<boolean> {
    this.#runs.get(id)?.stop.abort('canceled' satisfies QueueStop);
    return this.#queue.has(id);
  }

  async positions(ids: readonly string[]): Promise<readonly (number | null)[]> {
    const places = new Map(this.#queue.waiting().map((job, place) => [job.id, place]));
    return ids.map((id) => places.get(id) ?? null);
  }

  async waiting(user: string): Promise<WaitingJobs> {
    return { all: this.#queue.waiting().length, own: this.#queue.countOf(user) };
  }

  async nextOrder(): Promise<number> {
    return this.#queue.nextOrder();
  }

  worker(options: JobQueueWorkerOptions): JobQueueWorker {
    let isOpen = false;
    this.#startWaitingJobs = () => {
      while (isOpen && this.#runs.size < options.concurrency) {
        const job = this.#queue.take();
        if (!job) return;
        this.#orderChanged();
        const stop = new AbortController();
        this.#runs.set(job.id, { stop, end: this.#run(job, stop.signal, options) });
      }
    };
    return {
      start: () => {
        isOpen = true;
        this.#schedule();
      },
      close: async () => {
        isOpen = false;
        const runs = [...this.#runs.values()];
        for (const { stop } of runs) stop.abort('shutdown' satisfies QueueStop);
        await Promise.all(runs.map(({ end }) => end));
      },
    };
  }

  async close(): Promise<void> {}

  /** Starts jobs in a later turn, so that the client that submitted a job can subscribe before. */
  #schedule(): void {
    if (this.#queue.waiting().length === 0) return;
    setImmediate(() => this.#startWaitingJobs());
  }

  async #run(job: T, stop: AbortSignal, { run, giveUp }: JobQueueWorkerOptions): Promise<void> {
    const outcome = await run(job.id, stop).catch(async (error: unknown) => {
      await giveUp(job.id, error as Error);
      return 'over' as const;
    });
    this.#runs.delete(job.id);
    if (outcome === 'over') this.#queue.ended(job);
    else {
      this.#queue.returned(job);
      this.#orderChanged();
    }
    this.#schedule();
  }

  #orderChanged(): void {
    this.#onOrder(this.#queue.waiting());
  }
}
