import { completesWithin } from '../../lib/completes-within.ts';
import type { Logger } from '../../observability/log.ts';
import type { LiveJob } from './live-job.ts';
import { RUN_FLAG } from './worker-protocol.ts';

/**
 * How long a thread is awaited: one that ended too early never reports that it has synced its
 * files.
 */
const THREAD_SYNC_MS = 100;

type SyncOptions = {
  /** Syncs the files with these hashes. */
  syncFiles(hashes: readonly string[]): Promise<void>;
  readonly log: Logger;
};

/**
 * Resolves when the files of a job survive a power cut; `undefined` when they already do. The
 * thread syncs them after it has reported the end of the job. If it does not, they are synced here.
 */
export function filesOnDisk(
  job: LiveJob,
  flags: Int32Array,
  deps: SyncOptions,
): Promise<void> | undefined {
  if (job.outputs.length === 0 || areOnDisk(flags)) return undefined;
  return syncFiles(job, flags, deps);
}

async function syncFiles(job: LiveJob, flags: Int32Array, deps: SyncOptions): Promise<void> {
  // The time limit of the wait would not keep the process alive, but an orderly end must not be cut
  // short.
  const { value: notified } = Atomics.waitAsync(flags, RUN_FLAG.filesOnDisk, 0);
  await completesWithin(THREAD_SYNC_MS, Promise.resolve(notified));
  if (areOnDisk(flags)) return;
  try {
    await deps.syncFiles(job.outputs.flatMap(({ hash }) => hash ?? []));
  } catch (error) {
    const facts = { event: 'job.files_not_synced', err: error, job: job.id };
    deps.log.error(facts, 'files of a job could not be synced: a power cut may take them');
  }
}

function areOnDisk(flags: Int32Array): boolean {
  return Atomics.load(flags, RUN_FLAG.filesOnDisk) !== 0;
}
