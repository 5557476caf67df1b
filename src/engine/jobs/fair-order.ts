import type { QueuedJob } from './job-queue.ts';

/** A queue in which users take turns. */
export class FairQueue<T extends QueuedJob> {
  /** The waiting jobs by number, then by arrival: each user's jobs are in v1's order. */
  readonly #waiting: T[] = [];
  readonly #running = new Set<T>();
  /**
   * A value that grows with time, for each user with jobs: when the user began to wait, or when the
   * user's latest job ended.
   */
  readonly #since = new Map<string, number>();
  #changes = 0;
  #highest = -1;

  add(job: T): void {
    if (this.countOf(job.user) === 0) this.#since.set(job.user, ++this.#changes);
    this.#waiting.push(job);
    this.#waiting.sort(byOrder);
    this.#highest = Math.max(this.#highest, job.order);
  }

  /** Takes the next job, if one waits. Call `ended` or `returned` when it no longer runs. */
  take(): T | undefined {
    const [job] = this.waiting();
    if (!job) return undefined;
    this.#waiting.splice(this.#waiting.indexOf(job), 1);
    this.#running.add(job);
    return job;
  }

  ended(job: T): void {
    this.#running.delete(job);
    this.#since.set(job.user, ++this.#changes);
    this.#forgetIdle(job.user);
  }

  /** Makes a taken job wait again. Its user is next. */
  returned(job: T): void {
    this.#running.delete(job);
    this.#since.set(job.user, 0);
    this.#waiting.unshift(job);
    this.#waiting.sort(byOrder);
  }

  remove(id: string): boolean {
    const job = this.#waiting.find((other) => other.id === id);
    if (!job) return false;
    this.#waiting.splice(this.#waiting.indexOf(job), 1);
    this.#forgetIdle(job.user);
    return true;
  }

  /** True when a job waits or runs. */
  has(id: string): boolean {
    return [...this.#waiting, ...this.#running].some((job) => job.id === id);
  }

  /**
   * Returns the waiting jobs in the order in which they will run. Users take turns: the user with
   * the fewest running jobs is first, among equals the one who has waited longest. A single user
   * may use all workers. No running job is stopped for another user, but that user gets the next
   * free worker.
   */
  waiting(): readonly T[] {
    const turns = new Map<string, number>();
    const nextTurn = ({ user }: T): number => {
      const turn = turns.get(user) ?? 0;
      turns.set(user, turn + 1);
      return turn;
    };
    for (const job of this.#running) nextTurn(job);
    return this.#waiting
      .map((job) => ({ job, turn: nextTurn(job), since: this.#since.get(job.user) ?? 0 }))
      .sort((one, other) => one.turn - other.turn || one.since - other.since)
      .map(({ job }) => job);
  }

  countOf(user: string): number {
    return this.#waiting.filter((job) => job.user === user).length;
  }

  /** Returns an order after all jobs that were queued so far. */
  nextOrder(): number {
    return Math.floor(this.#highest) + 1;
  }

  #forgetIdle(user: string): void {
    const jobs = [...this.#waiting, ...this.#running];
    if (!jobs.some((job) => job.user === user)) this.#since.delete(user);
  }
}

function byOrder(one: QueuedJob, other: QueuedJob): number {
  return one.order - other.order;
}
