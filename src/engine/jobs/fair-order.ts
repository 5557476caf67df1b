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

/**
 * Creates an empty queue in which users take turns. `onMove` is called after every change with all
 * jobs that still wait.
 */
export function createFairQueue<T extends QueuedJob>(onMove: (waiting: readonly T[]) => void) {
  const users = new Map<string, UserJobs<T>>();
  let changes = 0;
  let highest = -1;
  const waiting = (): readonly T[] => fairOrder([...users.values()]);
  const userOf = (name: string): UserJobs<T> => {
    const user = users.get(name) ?? { jobs: [], running: 0, since: 0 };
    users.set(name, user);
    return user;
  };
  const removeIdle = (name: string): void => {
    const user = users.get(name);
    if (user?.jobs.length === 0 && user.running === 0) users.delete(name);
  };
  return {
    add(job: T): void {
      const user = userOf(job.user);
      const { jobs } = user;
      if (jobs.length === 0) user.since = ++changes;
      const before = jobs.findLastIndex((other) => other.order <= job.order);
      jobs.splice(before + 1, 0, job);
      highest = Math.max(highest, job.order);
      onMove(waiting());
    },
    /** Takes the next job, if one waits. Call `ended` or `returned` when it no longer runs. */
    take(): T | undefined {
      const [job] = waiting();
      if (!job) return undefined;
      const user = userOf(job.user);
      user.jobs.shift();
      user.running++;
      onMove(waiting());
      return job;
    },
    ended(job: T): void {
      const user = userOf(job.user);
      user.running--;
      user.since = ++changes;
      removeIdle(job.user);
    },
    /** Makes a taken job wait again. Its user is next. */
    returned(job: T): void {
      const user = userOf(job.user);
      user.running--;
      user.since = 0;
      const before = user.jobs.findIndex((other) => other.order >= job.order);
      user.jobs.splice(before < 0 ? user.jobs.length : before, 0, job);
      onMove(waiting());
    },
    remove(id: string): boolean {
      for (const [name, { jobs }] of users) {
        const index = jobs.findIndex((job) => job.id === id);
        if (index < 0) continue;
        jobs.splice(index, 1);
        removeIdle(name);
        onMove(waiting());
        return true;
      }
      return false;
    },
    /** Returns the waiting jobs in the order in which they will run. */
    waiting,
    count: (): number => waiting().length,
    countOf: (user: string): number => users.get(user)?.jobs.length ?? 0,
    /** Returns an order after all jobs that were queued so far. */
    nextOrder: (): number => Math.floor(highest) + 1,
  };
}
