/**
 * The moments between two durable steps at which tests kill a process. The first step must store
 * enough for the next process to continue.
 */
const CRASH_POINTS = [
  // From a prompt to its job.
  'after-intent',
  'after-submit',
  'after-attach',
  'after-outbox',
  'after-detach',
  // From the submission of a job to its end, in the embedded engine and over Redis.
  'after-job-insert',
  'after-queue-entry',
  'after-claim',
  'after-run-begin',
  'after-job-end-decided',
  'after-job-end',
  // For files that jobs make and clients upload.
  'after-bytes-stored',
  'after-asset-recorded',
  'after-output-named',
  'folder-owed',
  // For the record of a prompt after its end.
  'after-cancel-asked',
  'after-history',
  // `holdover import`.
  'import-bytes',
  'import-recorded',
  // `holdover backup` and `holdover restore`.
  'backup-records',
  'backup-file',
  'backup-listed',
  'restore-file',
  'restore-record',
  'restore-aside',
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Read once, since each read of an environment variable is a system call. */
const crashAt = process.env['HOLDOVER_CRASH_AT'];

let arrivalCount = 0;

/**
 * Ends this process as kill -9 does, if `HOLDOVER_CRASH_AT` names this point: only so can a test
 * hit the one instruction between two steps. `NAME:3` ends it when the point is reached for the
 * third time.
 */
export function reached(point: CrashPoint): void {
  if (crashAt === undefined) return;
  const [name, nth = '1'] = crashAt.split(':');
  if (name === point && ++arrivalCount === Number(nth)) process.kill(process.pid, 'SIGKILL');
}
