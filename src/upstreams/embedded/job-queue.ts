import { nextUser, fairOrder } from '../jobs/fair-order.ts';

/** A waiting job, ordered among those of its user: lower `order` first, ties by arrival. */
export type QueuedItem = { readonly id: string; readonly user: string; readonly order: number };

export type JobQueue<T extends QueuedItem> = {
  add(job: T): void;
  /** Takes the next job, if one waits. Call `ended` when it no longer runs. */
  take(): T | undefined;
  ended(job: T): void;
  remove(id: string): boolean;
  /** In running order. */
  waiting(): readonly T[];
  count(): number;
  countOf(user: string): number;
  /** An order after everything queued so far. */
  readonly nextOrder: () => number;
};

type UserJobs<T> = { readonly jobs: T[]; running: number; since: number };

/**
 * Creates an empty queue, in which users take turns (fair-order.ts). `onMove` is called after every
 * change with all jobs that still wait.
 */
export function createJobQueue<T extends QueuedItem>(
  onMove: (waiting: readonly T[]) => void,
): JobQueue<T> {
  const users = new Map<string, UserJobs<T>>();
  let changes = 0;
  let highest = -1;
  const waiting = (): T[] => fairOrder([...users.values()]);
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
    add(job) {
      const user = userOf(job.user);
      const { jobs } = user;
      if (jobs.length === 0) user.since = ++changes;
      const before = jobs.findLastIndex((other) => other.order <= job.order);
      jobs.splice(before + 1, 0, job);
      highest = Math.max(highest, job.order);
      onMove(waiting());
    },
    take() {
      const user = nextUser(users.values());
      const job = user?.jobs.shift();
      if (!user || !job) return undefined;
      user.running++;
      onMove(waiting());
      return job;
    },
    ended(job) {
      const user = userOf(job.user);
      user.running--;
      user.since = ++changes;
      removeIdle(job.user);
    },
    remove(id) {
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
    waiting,
    count: () => sum(users.values(), ({ jobs }) => jobs.length),
    countOf: (user) => users.get(user)?.jobs.length ?? 0,
    nextOrder: () => Math.floor(highest) + 1,
  };
}

function sum<T>(items: Iterable<T>, valueOf: (item: T) => number): number {
  let total = 0;
  for (const item of items) total += valueOf(item);
  return total;
}
