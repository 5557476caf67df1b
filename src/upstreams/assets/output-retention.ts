import type { Clock } from '../../lib/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { LiveJob } from '../jobs/live-job.ts';
import type { KeyedMutex } from '../../lib/concurrency.ts';
import type { StoredOutput } from '../jobs/worker-protocol.ts';
import { jobLock } from './retention.ts';

/** Retains outputs that a later job reuses from the cache, by retaining the job that made them. */
export type OutputRetention = ReturnType<typeof createOutputRetention>;

/** The retention is stored as the `expires_at` of the producing job, so it survives a restart. */
export function createOutputRetention(deps: {
  readonly ledger: Ledger;
  readonly withLock: KeyedMutex;
  readonly retentionMs: number;
  readonly clock: Clock;
}) {
  const { ledger, withLock } = deps;
  const extendTo = (jobId: string, untilMs: number): Promise<boolean> =>
    withLock(jobLock(jobId), async () => {
      const row = await ledger.jobs.get(jobId);
      if (row && row.expiresAtMs < untilMs)
        await ledger.jobs.update(jobId, { expiresAtMs: untilMs });
      return row !== undefined;
    });
  return {
    /**
     * Ids of the outputs that still exist. They are retained for the full retention time from now.
     */
    async retain(outputs: readonly StoredOutput[], user: string): Promise<readonly string[]> {
      const untilMs = deps.clock.now() + deps.retentionMs;
      const retained: string[] = [];
      for (const { id, job_id: producer } of outputs) {
        const isExtended = await extendTo(producer, untilMs);
        const row = isExtended ? await ledger.assets.get(id) : undefined;
        if (row?.user === user) retained.push(id);
      }
      return retained;
    },
    /** Retains the jobs whose outputs this job lists at least as long as this job. */
    async extend(job: LiveJob): Promise<void> {
      const producers = new Set(job.outputs.map((output) => output.job_id));
      for (const producer of producers) {
        if (producer !== job.id) await extendTo(producer, job.expiresAtMs);
      }
    },
  };
}
