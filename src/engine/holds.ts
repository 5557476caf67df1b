import type { Ledger } from '../ledger/ledger.ts';
import type { LiveJob } from './live.ts';
import type { Locks } from './locks.ts';
import type { StoredOutput } from './protocol.ts';
import { jobLock } from './retention.ts';

/** Keeps outputs alive that a later job took over from the cache: the job that made them lives on with it. */
export type Holds = {
  /** Ids of the outputs that still exist; they will for the length of the retention. */
  take(outputs: readonly StoredOutput[], user: string): Promise<readonly string[]>;
  /** Makes the producers live at least as long as this job, which lists their outputs. */
  extend(job: LiveJob): Promise<void>;
};

/** Holds are written down as the producing job's `expires_at`, so they survive a restart. */
export function createHolds(deps: {
  readonly ledger: Ledger;
  readonly locks: Locks;
  readonly retentionMs: number;
  readonly clock: () => number;
}): Holds {
  const { ledger, locks } = deps;
  const extendTo = (jobId: string, untilMs: number): Promise<boolean> =>
    locks(jobLock(jobId), async () => {
      const row = await ledger.jobs.get(jobId);
      if (row && row.expiresAtMs < untilMs)
        await ledger.jobs.update(jobId, { expiresAtMs: untilMs });
      return row !== undefined;
    });
  return {
    async take(outputs, user) {
      const untilMs = deps.clock() + deps.retentionMs;
      const alive: string[] = [];
      for (const { id, job_id: producer } of outputs) {
        const isHeld = await extendTo(producer, untilMs);
        const row = isHeld ? await ledger.assets.get(id) : undefined;
        if (row?.user === user) alive.push(id);
      }
      return alive;
    },
    async extend(job) {
      const producers = new Set(job.outputs.map((output) => output.job_id));
      for (const producer of producers) {
        if (producer !== job.id) await extendTo(producer, job.expiresAtMs);
      }
    },
  };
}
