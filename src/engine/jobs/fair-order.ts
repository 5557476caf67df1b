import type { QueuedJob } from './job-queue.ts';

/** The waiting jobs of one user, and the figures that decide which user is next. */
type UserJobs<T> = {
  /** The jobs in v1's order: by number, then by arrival. */
  readonly jobs: T[];
  /** The number of jobs of this user that run now. */
  running: number;
  /**
   * A value that grows with time: when the user began to wait, or when the user's latest job ended.
   */
  since: number;
};

/**
 * Returns the waiting jobs in the order in which they will run. Users take turns: the user with the
 * fewest running jobs is first, among equals the one who has waited longest. A single user may use
 * all workers. No running job is stopped for another user, but that user gets the next free worker.
 */
function fairOrder<T>(users: readonly UserJobs<T>[]): readonly T[] {
  const order: T[] = [];
  let waiting = users.toSorted((one, other) => one.since - other.since);
  for (let round = 0; waiting.length > 0; round++) {
    for (const { jobs, running } of waiting) {
      const job = jobs[round - running];
      if (job !== undefined) order.push(job);
    }
    waiting = waiting.filter(({ jobs, running }) => running + jobs.length > round + 1);
  }
  return order;
}

/** A queue in which users take turns. */
export class FairQueue<T extends QueuedJob> {
  readonly #onMove: (waiting: readonly T[]) => void;
  readonly #users = new Map<string, UserJobs<T>>();
  #changes = 0;
  #highest = -1;

  /** `onMove` is called after every change with all jobs that still wait. */
  constructor(onMove: (waiting: readonly T[]) => void) {
    this.#onMove = onMove;
  }

  add(job: T): void {
    const user = this.#userOf(job.user);
    if (user.jobs.length === 0) user.since = ++this.#changes;
    user.jobs.push(job);
    user.jobs.sort(byOrder);
    this.#highest = Math.max(this.#highest, job.order);
    this.#onMove(this.waiting());
  }

  /** Takes the next job, if one waits. Call `ended` or `returned` when it no longer runs. */
  take(): T | undefined {
    const [job] = this.waiting();
    if (!job) return undefined;
    const user = this.#userOf(job.user);
    user.jobs.shift();
    user.running++;
    this.#onMove(this.waiting());
    return job;
  }

  ended(job: T): void {
    const user = this.#userOf(job.user);
    user.running--;
    user.since = ++this.#changes;
    this.#removeIdle(job.user);
  }

  /** Makes a taken job wait again. Its user is next. */
  returned(job: T): void {
    const user = this.#userOf(job.user);
    user.running--;
    user.since = 0;
    user.jobs.unshift(job);
    user.jobs.sort(byOrder);
    this.#onMove(this.waiting());
  }

  remove(id: string): boolean {
    for (const [name, { jobs }] of this.#users) {
      const index = jobs.findIndex((job) => job.id === id);
      if (index < 0) continue;
      jobs.splice(index, 1);
      this.#removeIdle(name);
      this.#onMove(this.waiting());
      return true;
    }
    return false;
  }

  /** Returns the waiting jobs in the order in which they will run. */
  waiting(): readonly T[] {
    return fairOrder([...this.#users.values()]);
  }

  countOf(user: string): number {
    return this.#users.get(user)?.jobs.length ?? 0;
  }

  /** Returns an order after all jobs that were queued so far. */
  nextOrder(): number {
    return Math.floor(this.#highest) + 1;
  }

  #userOf(name: string): UserJobs<T> {
    const user = this.#users.get(name) ?? { jobs: [], running: 0, since: 0 };
    this.#users.set(name, user);
    return user;
  }

  #removeIdle(name: string): void {
    const user = this.#users.get(name);
    if (user?.jobs.length === 0 && user.running === 0) this.#users.delete(name);
  }
}

function byOrder(one: QueuedJob, other: QueuedJob): number {
  return one.order - other.order;
}
