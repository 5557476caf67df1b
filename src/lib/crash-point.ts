/**
 * The moments between two durable steps at which tests kill a process: the first step must store
 * enough for the next process to continue.
 */
const CRASH_POINTS = [
  // The way of a prompt to its job.
  'after-intent',
  'after-submit',
  'after-attach',
  'after-outbox',
  'after-detach',
  // A job from its submission to its end, in the embedded engine and over Redis.
  'after-job-insert',
  'after-queue-entry',
  'after-claim',
  'after-run-begin',
  'after-job-end-decided',
  'after-job-end',
  // Files that jobs make and clients upload.
  'after-bytes-stored',
  'after-asset-recorded',
  'after-output-named',
  'folder-owed',
  // The record of a prompt after its end.
  'after-cancel-asked',
  'after-history',
  // `holdover import`.
  'import-bytes',
  'import-recorded',
  // `holdover migrate`.
  'migrate-row',
  'migrate-verified',
  'migrate-placed',
  // Files that `holdover migrate` and `holdover restore` copy into a folder or a bucket.
  'copy-file',
  'copy-verified',
  'copy-named',
  'copy-bound',
  // `holdover backup` and `holdover restore`.
  'backup-file',
  'backup-records',
  'backup-copied',
  'backup-listed',
  'restore-file',
  'restore-aside',
  'restore-placed',
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Read once: each read of an environment variable is a call into the system. */
const crashAt = process.env['HOLDOVER_CRASH_AT'];

let arrivalCount = 0;

/**
 * Makes this process die, as by kill -9, where `HOLDOVER_CRASH_AT` names this point: only so can a
 * test hit the one instruction between two steps. `NAME:3` dies when the point is reached for the
 * third time.
 */
export function reached(point: CrashPoint): void {
  if (crashAt === undefined) return;
  const [name, nth = '1'] = crashAt.split(':');
  if (name === point && ++arrivalCount === Number(nth)) process.kill(process.pid, 'SIGKILL');
}
