/** A waiting job's place: lower `order` first, ties by arrival. */
export type Queued = { readonly id: string; readonly order: number };

export type Queue<T extends Queued> = {
  add(job: T): void;
  /** Takes the first job, if there is one. */
  take(): T | undefined;
  remove(id: string): boolean;
  /** In running order. */
  waiting(): readonly T[];
  /** An order behind everything queued so far. */
  readonly lastPlace: () => number;
};

/** Starts an empty queue; `onMove` is called after every change, with all that still wait. */
export function createQueue<T extends Queued>(onMove: (waiting: readonly T[]) => void): Queue<T> {
  const jobs: T[] = [];
  let highest = -1;
  return {
    add(job) {
      const behind = jobs.findIndex((other) => other.order > job.order);
      jobs.splice(behind < 0 ? jobs.length : behind, 0, job);
      highest = Math.max(highest, job.order);
      onMove(jobs);
    },
    take() {
      const job = jobs.shift();
      if (job) onMove(jobs);
      return job;
    },
    remove(id) {
      const index = jobs.findIndex((job) => job.id === id);
      if (index < 0) return false;
      jobs.splice(index, 1);
      onMove(jobs);
      return true;
    },
    waiting: () => jobs,
    lastPlace: () => Math.floor(highest) + 1,
  };
}
