import type { Clock } from '../../lib/clock.ts';
import type { JobRow, Ledger } from '../../ledger/ledger.ts';
import { stringifyJson } from '../../protocol/json.ts';

import type { Assets } from '../assets/assets.ts';
import { jobError } from './job-error.ts';
import { type LiveJob, jobFromRow, toPatch } from './live-job.ts';

/**
 * A job fails after this many crashes of its process while one of its nodes was running; an orderly
 * stop, or a crash while the job waits, does not count.
 */
export const MAX_ATTEMPTS = 3;

export type RecoverOptions = {
  readonly ledger: Ledger;
  readonly assets: Pick<Assets, 'removeAsset'>;
  readonly retentionMs: number;
  readonly clock: Clock;
};

/**
 * Recovers the jobs that an earlier process left unfinished: queued jobs keep their order, a
 * running one starts again without its earlier outputs, one that was being cancelled is cancelled.
 */
export async function recoverJobs(deps: RecoverOptions): Promise<readonly LiveJob[]> {
  const jobs: LiveJob[] = [];
  for (const row of await deps.ledger.jobs.unfinished()) {
    if (row.status === 'canceling') await end(row, { status: 'canceled', errorJson: null }, deps);
    else jobs.push(...(await restart(row, deps)));
  }
  return jobs;
}

async function restart(row: JobRow, deps: RecoverOptions): Promise<readonly LiveJob[]> {
  const job = jobFromRow(row);
  if (row.status === 'running' && job.attempts >= MAX_ATTEMPTS) {
    const message = `the server died ${job.attempts} times while running this job`;
    const error = jobError('worker_lost', message, { exceptionType: 'RuntimeError' });
    await end(row, { status: 'failed', errorJson: stringifyJson(error) }, deps);
    return [];
  }
  for (const asset of await deps.ledger.assets.ofJob(row.id)) await deps.assets.removeAsset(asset);
  if (row.status === 'running') await deps.ledger.jobs.update(row.id, toPatch(job));
  return [job];
}

async function end(
  row: JobRow,
  outcome: Pick<JobRow, 'status' | 'errorJson'>,
  { ledger, retentionMs, clock }: RecoverOptions,
): Promise<void> {
  const completedAtMs = clock.now();
  await ledger.jobs.update(row.id, {
    ...outcome,
    completedAtMs,
    expiresAtMs: completedAtMs + retentionMs,
  });
}
