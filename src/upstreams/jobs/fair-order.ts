/** A waiting job, ordered among those of its user: lower `order` first, ties by arrival. */
type QueuedItem = { readonly id: string; readonly user: string; readonly order: number };

/** The waiting jobs of one user, and the figures that decide whose turn is next. */
type UserJobs<T> = {
  /** In v1's order: by number, then by arrival. */
  readonly jobs: T[];
  /** Jobs of this user that run now. */
  running: number;
  /** Grows with time: when the user began to wait, or when the latest job of this user ended. */
  since: number;
};

/**
 * Waiting jobs in the order they will run in. Users take turns: the one with the fewest running
 * jobs goes first, among equals the one who has waited longest. A single user may use all workers;
 * a running job is never stopped for another user, but that user gets the next free worker.
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
 * Creates an empty queue, in which users take turns. `onMove` is called after every
 * change with all jobs that still wait.
 */
export function createFairQueue<T extends QueuedItem>(onMove: (waiting: readonly T[]) => void) {
  const users = new Map<string, UserJobs<T>>();
  let changes = 0;
  let highest = -1;
  /** Of the waiting jobs, until the next change. */
  let order: readonly T[] | undefined;
  const waiting = (): readonly T[] => (order ??= fairOrder([...users.values()]));
  const move = (): void => {
    order = undefined;
    onMove(waiting());
  };
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
      move();
    },
    /** For a job that runs without waiting. Call `ended` when it no longer runs. */
    addRunning(job: T): void {
      userOf(job.user).running++;
      highest = Math.max(highest, job.order);
      order = undefined;
    },
    /** Takes the next job, if one waits. Call `ended` or `returned` when it no longer runs. */
    take(): T | undefined {
      const [job] = waiting();
      if (!job) return undefined;
      const user = userOf(job.user);
      user.jobs.shift();
      user.running++;
      move();
      return job;
    },
    ended(job: T): void {
      const user = userOf(job.user);
      user.running--;
      user.since = ++changes;
      order = undefined;
      removeIdle(job.user);
    },
    /** A taken job waits again, and its user is next. */
    returned(job: T): void {
      const user = userOf(job.user);
      user.running--;
      user.since = 0;
      const before = user.jobs.findIndex((other) => other.order >= job.order);
      user.jobs.splice(before < 0 ? user.jobs.length : before, 0, job);
      move();
    },
    remove(id: string): boolean {
      for (const [name, { jobs }] of users) {
        const index = jobs.findIndex((job) => job.id === id);
        if (index < 0) continue;
        jobs.splice(index, 1);
        removeIdle(name);
        move();
        return true;
      }
      return false;
    },
    /** In running order. */
    waiting,
    count: (): number => waiting().length,
    countOf: (user: string): number => users.get(user)?.jobs.length ?? 0,
    /** An order after everything queued so far. */
    nextOrder: (): number => Math.floor(highest) + 1,
  };
}
