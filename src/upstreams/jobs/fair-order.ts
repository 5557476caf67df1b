/** The waiting jobs of one user, and the figures that decide whose turn is next. */
export type UserQueue<T> = {
  /** In v1's order: by number, then by arrival. */
  readonly jobs: readonly T[];
  /** Jobs of this user that run now. */
  readonly running: number;
  /** Grows with time: when the user began to wait, or when the latest job of this user ended. */
  readonly since: number;
};

/**
 * Waiting jobs in the order they will run in. Users take turns: the one with the fewest running
 * jobs goes first, among equals the one who has waited longest. A single user may use all workers;
 * a running job is never stopped for another user, but that user gets the next free worker.
 */
export function fairOrder<T>(users: readonly UserQueue<T>[]): T[] {
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

/** The user whose turn is next, of those who have a waiting job. */
export function nextUser<U extends UserQueue<unknown>>(users: Iterable<U>): U | undefined {
  let next: U | undefined;
  for (const user of users) {
    if (user.jobs.length > 0 && (next === undefined || goesFirst(user, next))) next = user;
  }
  return next;
}

function goesFirst(one: UserQueue<unknown>, other: UserQueue<unknown>): boolean {
  if (one.running !== other.running) return one.running < other.running;
  return one.since < other.since;
}

/**
 * True when one more job of a user may wait. Beyond the limit a tenth more is reserved for users
 * who have nothing waiting, so that one user's jobs cannot keep others out.
 */
export function hasQueueCapacity({
  waiting,
  ofUser,
  limit,
}: {
  readonly waiting: number;
  readonly ofUser: number;
  readonly limit: number;
}): boolean {
  return waiting < (ofUser > 0 ? limit : limit + Math.ceil(limit / 10));
}
